#!/usr/bin/env bash
# Prepares Penn Treebank. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare ptb "$@"
