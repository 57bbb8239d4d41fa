#!/usr/bin/env bash
# Prepares running text of your own for language models: words as they are, or characters, and fairseq-preprocess.
#
#   scripts/prepare_text.sh --train train.txt --valid valid.txt --test test.txt --output work/mine/data
#   scripts/prepare_text.sh --train train.txt --valid valid.txt --characters --output work/mine_characters/data
#
# Each line's end is a token, too. Nothing is lower-cased or tokenised unless asked. --help lists all options. Running it
# again does nothing, or goes on where it was interrupted. Training then takes work/mine/data/bin.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.running_text "$@"
