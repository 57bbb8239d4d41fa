#!/usr/bin/env bash
# Prepares the copy memory problem. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare copy_memory "$@"
