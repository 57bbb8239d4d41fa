#!/usr/bin/env bash
# Prepares generated passages with questions. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare generated_passages "$@"
