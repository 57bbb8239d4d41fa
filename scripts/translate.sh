#!/usr/bin/env bash
# Translates the standard input with a trained model. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command translate "$@"
