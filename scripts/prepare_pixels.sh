#!/usr/bin/env bash
# Prepares MNIST's digits, pixel by pixel. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare pixels "$@"
