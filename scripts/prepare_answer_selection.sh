#!/usr/bin/env bash
# Prepares WikiQA or TrecQA: questions with candidates to rank.
#
#   scripts/prepare_answer_selection.sh --input wikiqa --output work/wikiqa/data
#   scripts/prepare_answer_selection.sh --input trecqa --clean --output work/trecqa/data
#
# The folder holds WikiQA-train.tsv, WikiQA-dev.tsv and WikiQA-test.tsv, or folders train, dev and test with a.toks,
# b.toks, sim.txt and id.txt each. --help lists all options.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.answer_selection "$@"
