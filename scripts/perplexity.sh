#!/usr/bin/env bash
# Prints the perplexity of the standard input to a trained language model. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command perplexity "$@"
