#!/usr/bin/env bash
# Prepares generated sounds of four voices. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare generated_voices "$@"
