#!/usr/bin/env bash
# Writes an experiment's report: one HTML file with its scores, learning curves, sample translations and commands.
#
#   scripts/report.sh WORK [--output FILE]
#
#   WORK           the work folder of scripts/train.sh and scripts/evaluate.sh, for example work/quickstart/mc_rnn_3
#   --output FILE  the report (WORK/report.html by default)
#
# The file needs nothing else, no network either. Prints where it is. Sample translations need the prepared data that the
# model was trained on to be where it was.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[[ $# -ge 1 ]] || { print_help >&2; exit 2; }
[[ $1 != --help && $1 != -h ]] || { print_help; exit 0; }
exec_module experiments.experiment_report "$@"
