#!/usr/bin/env bash
# Translates a test set with a trained model, and scores it. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command evaluate "$@"
