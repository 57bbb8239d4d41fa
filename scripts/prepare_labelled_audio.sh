#!/usr/bin/env bash
# Prepares recordings of your own, with labels. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
run_command prepare labelled_audio "$@"
