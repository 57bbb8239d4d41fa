#!/usr/bin/env bash
# Prepares SNLI or SciTail. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare entailment "$@"
