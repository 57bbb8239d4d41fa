#!/usr/bin/env bash
# Checks an installation. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command check "$@"
