#!/usr/bin/env bash
# Serves exported models: LibreTranslate's HTTP interface, and a page. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command serve "$@"
