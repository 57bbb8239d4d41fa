#!/usr/bin/env bash
# Prepares one of 16 sets of reviews. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare reviews "$@"
