#!/usr/bin/env bash
# Prepares running text of your own for language models. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare text "$@"
