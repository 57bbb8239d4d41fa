#!/usr/bin/env bash
# Prepares Gigaword headlines as Rush et al. (2015) processed them, the papers' summarisation benchmark.
#
#   scripts/prepare_gigaword.sh --input sumdata --output work/gigaword/data
#   scripts/prepare_gigaword.sh --input sumdata --joined-dictionary --output work/gigaword_joined/data      # for DPN-S2S
#
# The text must be given: a folder with train.article.txt, train.title.txt, valid.article.filter.txt and
# valid.title.filter.txt (plain or .gz), or the archive that holds them. --help lists all options. Running it again does
# nothing, or goes on where it was interrupted. Training then takes work/gigaword/data/bin.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.gigaword "$@"
