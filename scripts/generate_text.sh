#!/usr/bin/env bash
# Draws text from a trained language model.
#
#   scripts/generate_text.sh CHECKPOINT [--tokens 200] [--prompt TEXT] [--temperature 1.0] [--top-k N] [--seed 1]
#                            [--data DIR] [--gpus N]
#
#   CHECKPOINT     for example work/quickstart_language_model/mc_rnn_3/checkpoints/checkpoint_best.pt,
#                  or work/quickstart_language_model/mc_rnn_3 for the same
#   --tokens N     words or characters, the lines' ends among them
#   --prompt TEXT  how the first line begins
#   --data DIR     the prepared data (what the checkpoint was trained on by default)
#
# The same seed draws the same text.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ $# -ge 1 ]] || { print_help >&2; exit 2; }
[[ $1 != --help && $1 != -h ]] || { print_help; exit 0; }
exec_module language_models generate "$@"
