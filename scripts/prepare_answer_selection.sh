#!/usr/bin/env bash
# Prepares WikiQA or TrecQA. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare answer_selection "$@"
