#!/usr/bin/env bash
# Prepares passages with questions of your own. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare questions "$@"
