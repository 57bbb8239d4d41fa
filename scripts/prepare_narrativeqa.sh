#!/usr/bin/env bash
# Prepares NarrativeQA's summaries. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare narrativeqa "$@"
