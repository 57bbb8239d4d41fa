#!/usr/bin/env bash
# Prepares VCTK's speakers. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare vctk "$@"
