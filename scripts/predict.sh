#!/usr/bin/env bash
# Predicts the classes of texts with a trained model: raw text in, one line out for each line.
#
#   scripts/predict.sh CHECKPOINT [--data DIR] [--gpus N] [FAIRSEQ-VALIDATE OPTIONS...] < text
#
#   CHECKPOINT  for example work/trec/rcrn/checkpoints/checkpoint_best.pt, or work/trec/rcrn for the same
#   --data DIR  the prepared data (what the checkpoint was trained on by default)
#   --gpus N    0 for the CPU, 1 for a GPU (a GPU where there is one by default)
#
# A line out is the class, a tab, and each class with its probability; of a model that ranks, the candidate's score. Pairs
# of texts have a tab between them. Tokenisation and lower-casing are those of preparation.json in the prepared data.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ $# -ge 1 ]] || { print_help >&2; exit 2; }
[[ $1 != --help && $1 != -h ]] || { print_help; exit 0; }
exec_module experiments.predict "$@"
