#!/usr/bin/env bash
# From nothing to a translating model: installs into .venv, makes a small German-English corpus out of a grammar, trains
# MC-RNN and RNNSearch on it side by side on the CPU, scores both, and translates a sentence. Or the same with headlines
# for the first sentences of articles, or with language models of a text, MC-RNN and an LSTM.
#
#   scripts/quickstart.sh [--task translation|summarization|language_model] [--sentence TEXT] [--max-update N] [--work DIR]
#
#   --task NAME      translation (the default), summarization, or language_model
#   --sentence TEXT  a German sentence to translate at the end, an English one to write a headline for, or the beginning of
#                    a text to go on with
#   --max-update N   stop training after N updates: a quick check that everything works
#   --work DIR       where everything goes (work/quickstart or work/quickstart_<task> by default)
#
# Takes some 10 minutes on 2 CPU cores after the installation, which fetches PyTorch and may compile fairseq. $PYTHON
# (python3 by default; 3.10, 3.11 or 3.12) is the interpreter that .venv is made of; if the project is already installed
# for it, it is used as it is.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[[ ${1:-} != --help && ${1:-} != -h ]] || { print_help; exit 0; }
ensure_environment ""
exec_module experiments.quickstart "$@"
