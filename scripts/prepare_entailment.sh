#!/usr/bin/env bash
# Prepares SNLI or SciTail: does a premise entail a hypothesis?
#
#   scripts/prepare_entailment.sh --input snli_1.0 --output work/snli/data
#   scripts/prepare_entailment.sh --input SciTailV1.1/snli_format --output work/scitail/data
#
# --help lists all options.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.entailment "$@"
