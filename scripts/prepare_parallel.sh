#!/usr/bin/env bash
# Prepares parallel text of your own for fairseq: cleaning, tokens, BPE, fairseq-preprocess.
#
#   scripts/prepare_parallel.sh --src-lang de --tgt-lang en --train data/train --valid data/valid --test data/test \
#       --output data/prepared --lowercase --tokenizer moses --bpe-size 8000
#
# Nothing is lower-cased or tokenised unless asked. --help lists all options. Running it again does nothing, or goes on
# where it was interrupted. Training then takes data/prepared/bin.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.parallel_text "$@"
