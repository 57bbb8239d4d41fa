#!/usr/bin/env bash
# Prepares NIST Chinese-English as DPN-S2S's paper does, from the LDC's corpora and NIST's evaluation sets, which are under
# licence and must be given.
#
#   scripts/prepare_nist_zh_en.sh --ldc LDC --nist EVALUATION --bpe subword-nmt --output work/nist_zh_en/data
#   scripts/prepare_nist_zh_en.sh --train corpus --set 2003=mt03.src.sgm,mt03.ref.sgm --output work/nist_zh_en/data
#
# LDC holds folders named LDC2002E18, LDC2003E07, ...; corpus stands for corpus.zh and corpus.en. --help lists all options.
# Needs the extra "chinese": scripts/install.sh --extras chinese. Running it again does nothing, or goes on where it was
# interrupted. Training then takes work/nist_zh_en/data/bin.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.nist "$@"
