#!/usr/bin/env bash
# Prepares TREC question classification: 6 classes, or 50 with --fine.
#
#   scripts/prepare_trec.sh --train train_5500.label --test TREC_10.label --output work/trec/data
#
# --help lists all options.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.trec "$@"
