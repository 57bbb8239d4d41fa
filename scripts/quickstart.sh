#!/usr/bin/env bash
# From nothing to a translating model: installs into .venv, makes a small German-English corpus out of a grammar, trains
# MC-RNN and RNNSearch on it side by side on the CPU, scores both, and translates a sentence. Or the same with headlines
# for the first sentences of articles, RCRN and a BiLSTM that say who acts in a sentence, or language models of a text.
#
#   scripts/quickstart.sh [--task translation|summarization|classification|language_model] [--sentence TEXT]
#                         [--max-update N] [--seed N] [--work DIR] [--record]
#
#   --task NAME      translation (the default), summarization, classification, or language_model
#   --sentence TEXT  a German sentence to translate at the end, an English one to write a headline for or to classify, or
#                    the beginning of a text to go on with
#   --max-update N   stop training after N updates: a quick check that everything works
#   --seed N         of both trainings, in place of the configurations'; then --work is work/quickstart_seed_N by default
#   --work DIR       where everything goes (work/quickstart, work/quickstart_summarization … by default)
#   --record         also writes both runs to results/, for docs/results.md; then run scripts/update_docs.sh
#
# Takes 5 to 6 minutes on 2 CPU cores (classification 1, language_model 2) after the installation, which fetches PyTorch and may compile fairseq. $PYTHON
# (python3 by default, or python3.12, 3.11 or 3.10 where python3 is another) is the interpreter that .venv is made of; if
# the project is already installed for it, it is used as it is.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ ${1:-} != --help && ${1:-} != -h ]] || { print_help; exit 0; }
ensure_environment ""
exec_module experiments.quickstart "$@"
