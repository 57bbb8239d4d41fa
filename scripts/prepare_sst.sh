#!/usr/bin/env bash
# Prepares the Stanford Sentiment Treebank, whole sentences: SST-5 or SST-2.
#
#   scripts/prepare_sst.sh --input sst --classes 5 --output work/sst_5/data
#   scripts/prepare_sst.sh --input sst --classes 2 --output work/sst_2/data
#
# The folder holds stsa.fine.train, stsa.fine.dev, … and stsa.binary.train, …. --help lists all options.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.sst "$@"
