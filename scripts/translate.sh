#!/usr/bin/env bash
# Translates text with a trained model: raw text in, raw text out, one line for each line.
#
#   scripts/translate.sh CHECKPOINT [--data DIR] [--beam 5] [--gpus N] [FAIRSEQ-INTERACTIVE OPTIONS...] < text
#
#   CHECKPOINT  for example work/quickstart/mc_rnn_3/checkpoints/checkpoint_best.pt, or work/quickstart/mc_rnn_3 for the same;
#               FILE:FILE is an ensemble
#   --data DIR  the prepared data (what the checkpoint was trained on by default)
#   --beam N    beam size
#   --gpus N    0 for the CPU, 1 for a GPU (a GPU where there is one by default)
#
# A line that is longer than the model takes (1,024 tokens or more, by architecture) becomes an empty line, and a warning
# names it; so does one where a translation reaches the limit of its length, 200 tokens unless --max-len-b says otherwise.
# Tokenisation, lower-casing and BPE are those of preparation.json in the prepared data.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ $# -ge 1 ]] || { print_help >&2; exit 2; }
[[ $1 != --help && $1 != -h ]] || { print_help; exit 0; }
exec_module experiments.translate "$@"
