#!/usr/bin/env bash
# The perplexity of a text of your own to a trained language model, or its bits per character.
#
#   scripts/perplexity.sh CHECKPOINT [--words] [--cache] [--data DIR] [--gpus N] < text
#
#   CHECKPOINT  for example work/quickstart_language_model/mc_rnn_3/checkpoints/checkpoint_best.pt,
#               or work/quickstart_language_model/mc_rnn_3 for the same
#   --words     each token with its surprise in bits, too
#   --cache     with the continuous cache, its settings found on the validation set, or given: --cache-window N,
#               --cache-theta X and --cache-weight X
#   --data DIR  the prepared data (what the checkpoint was trained on by default)
#
# The text is prepared as that of the training was. Each line's end counts as a token.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ $# -ge 1 ]] || { print_help >&2; exit 2; }
[[ $1 != --help && $1 != -h ]] || { print_help; exit 0; }
exec_module language_models perplexity "$@"
