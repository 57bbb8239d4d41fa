#!/usr/bin/env bash
# Prepares Penn Treebank as Mikolov et al. (2010) processed it, the papers' benchmark of language models.
#
#   scripts/prepare_ptb.sh --input ptb --output work/ptb/data
#   scripts/prepare_ptb.sh --input ptb --characters --output work/ptb_characters/data
#
# The text must be given: a folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt (or ptb.char.train.txt ..., for
# --characters), plain or .gz. --help lists all options. Running it again does nothing, or goes on where it was interrupted.
# Training then takes work/ptb/data/bin.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.ptb "$@"
