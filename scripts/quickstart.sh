#!/usr/bin/env bash
# From nothing to a translating model: installs into .venv, then runs `fairseq-plugins quickstart`, which trains two models
# on a built-in corpus. Once it is installed, --help says more.
#
#   scripts/quickstart.sh [--task translation|summarization|classification|language_model] [--max-update N] [...]
#
# $PYTHON (python3 by default, or python3.12, 3.11 or 3.10 where python3 is another) is the interpreter that .venv is made
# of; if the project is already installed for it, it is used as it is. The installation fetches PyTorch and may compile
# fairseq.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  find_python
  has_installed fairseq-plugins || { print_help; exit 0; }
fi
ensure_environment ""
run_command quickstart "$@"
