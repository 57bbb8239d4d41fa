#!/usr/bin/env bash
# Prepares FairytaleQA. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare fairytale_qa "$@"
