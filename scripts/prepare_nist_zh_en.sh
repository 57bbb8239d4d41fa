#!/usr/bin/env bash
# Prepares NIST Chinese-English. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare nist_zh_en "$@"
