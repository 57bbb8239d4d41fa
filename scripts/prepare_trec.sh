#!/usr/bin/env bash
# Prepares TREC's questions. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare trec "$@"
