#!/usr/bin/env bash
# Reproduces a table of the papers: trains and evaluates every row, and writes the table with the paper's figures beside
# ours as Markdown, CSV and JSON, and a report.html. Goes on where it was interrupted.
#
#   scripts/reproduce.sh TABLE [--scale paper|small] [--seeds N...] [--work DIR] [--data DIR] [--max-update N] [--gpus N]
#                        [--cores N] [--recipe NAME] [--dry-run] [SNAKEMAKE OPTIONS...]
#
#   TABLE           mc_rnn_table_2, _3, _4, _5, dpn_table_1, _2, _3, _4, _5, rcrn_table_1 … _8, dilated_rnn_table_1, _2 or
#                   dilated_rnn_figure_3 … _6 (configs/tables); rcrn_table_10 times models, with the options of
#                   benchmarks/rcrn_table_10.py
#   --scale small   built-in sentences and small models: half an hour on 2 CPU cores, and not the paper's setting. The
#                   default, paper, needs the prepared data (docs/data.md) and GPUs for hours or days
#   --recipe NAME   train every row by another recipe: paper is the DPN-S2S paper's own, configs/*/*_paper.yaml
#   --seeds N...    seeds of each row's training (1 by default); several give a mean and a deviation
#   --work DIR      where everything goes (work/reproduce/<scale> by default); tables share their experiments
#   --data DIR      prepared data for every row, instead of what the configurations say
#   --max-update N  the same number of updates for every row
#   --gpus N        how many GPUs of this machine, one for each row at a time; 0 for the CPU (all there are by default)
#   --cores N       how many steps run at the same time (as many as there are CPU cores by default)
#   --dry-run       print every command that is left to run, and run none
#
# Further options go to Snakemake: on a cluster with SLURM, --profile configs/slurm. Needs scripts/install.sh --extras
# workflow, and Python 3.11 or later.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ $# -ge 1 ]] || { print_help >&2; exit 2; }
[[ $1 != --help && $1 != -h ]] || { print_help; exit 0; }
exec_module tables.workflow "$@"
