#!/usr/bin/env bash
# Prepares spoken digits. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare spoken_digits "$@"
