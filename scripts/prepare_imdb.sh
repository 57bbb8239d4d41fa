#!/usr/bin/env bash
# Prepares IMDb's reviews. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare imdb "$@"
