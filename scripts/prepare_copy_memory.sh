#!/usr/bin/env bash
# Prepares the copy memory problem: ten symbols to copy after T steps.
#
#   scripts/prepare_copy_memory.sh --length 500 --output work/copy_memory_500/data
#
# Training sequences are drawn as they are needed; validation and test sets are written. --help lists all options.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.generated_sequences copy-memory "$@"
