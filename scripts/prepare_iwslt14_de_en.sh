#!/usr/bin/env bash
# Prepares IWSLT'14 German-English. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare iwslt14_de_en "$@"
