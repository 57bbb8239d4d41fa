#!/usr/bin/env bash
# Prepares the Stanford Sentiment Treebank. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare sst "$@"
