#!/usr/bin/env bash
# Writes an HTML page about one experiment, or several. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command report "$@"
