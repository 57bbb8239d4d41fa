#!/usr/bin/env bash
# Writes an experiment's report: one HTML file with its scores, learning curves, sample translations and commands.
#
#   scripts/report.sh WORK [--output FILE] [--title TEXT] [--subtitle TEXT] [--notice TEXT]
#   scripts/report.sh NAME=WORK NAME=WORK ... --output FILE [--title TEXT] [--subtitle TEXT] [--notice TEXT]
#
#   WORK           the work folder of scripts/train.sh and scripts/evaluate.sh, for example work/quickstart/mc_rnn_3
#   NAME=WORK ...  several experiments on one page, side by side, under these names
#   --output FILE  the report (WORK/report.html by default, of one experiment)
#   --title TEXT   of the page; --subtitle is the line below it, --notice what must not be overlooked
#
# The file needs nothing else, no network either. Prints where it is. Sample translations need the prepared data that the
# model was trained on to be where it was.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ $# -ge 1 ]] || { print_help >&2; exit 2; }
[[ $1 != --help && $1 != -h ]] || { print_help; exit 0; }
exec_module report "$@"
