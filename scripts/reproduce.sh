#!/usr/bin/env bash
# Reproduces a table of the papers. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command reproduce "$@"
