#!/usr/bin/env bash
# Prepares labelled texts of your own: a table or JSON lines. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare labelled_texts "$@"
