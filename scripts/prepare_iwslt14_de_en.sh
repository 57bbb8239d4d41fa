#!/usr/bin/env bash
# Prepares IWSLT'14 German-English, the papers' benchmark, as fairseq's prepare-iwslt14.sh does.
#
#   scripts/prepare_iwslt14_de_en.sh --output work/iwslt14_de_en/data
#   scripts/prepare_iwslt14_de_en.sh --archive de-en.tgz --bpe subword-nmt --bpe-size 10000 --output work/iwslt14_10k/data
#   scripts/prepare_iwslt14_de_en.sh --tokenized DIR --output work/iwslt14_de_en/data
#
# Fetches the official archive unless it is given with --archive. --help lists all options. Running it again does nothing,
# or goes on where it was interrupted. Training then takes work/iwslt14_de_en/data/bin.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.iwslt14 "$@"
