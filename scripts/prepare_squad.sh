#!/usr/bin/env bash
# Prepares SQuAD 1.1. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare squad "$@"
