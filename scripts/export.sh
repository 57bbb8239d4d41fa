#!/usr/bin/env bash
# Exports a trained model to a folder that runs without PyTorch and fairseq. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command export "$@"
