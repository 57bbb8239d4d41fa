#!/usr/bin/env bash
# Trains the model of a configuration. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command train "$@"
