#!/usr/bin/env bash
# Draws text from a trained language model. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command generate-text "$@"
