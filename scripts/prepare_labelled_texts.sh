#!/usr/bin/env bash
# Prepares labelled texts of your own: a table (TSV) or JSON lines.
#
#   scripts/prepare_labelled_texts.sh --train train.tsv --test test.tsv --text sentence --label class --output work/mine/data
#   scripts/prepare_labelled_texts.sh --train a.jsonl --format jsonl --text premise --text hypothesis --label gold \
#       --output work/pairs/data
#
# The first line of a table names its columns; where there is no such line, give their numbers. --help lists all options.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.labelled_tables "$@"
