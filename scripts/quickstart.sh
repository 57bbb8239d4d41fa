#!/usr/bin/env bash
# From nothing to a translating model: installs into .venv, then runs `fairseq-plugins quickstart`. --help says more.
#
# $PYTHON (python3 by default, or python3.12, 3.11 or 3.10 where python3 is another) is the interpreter that .venv is made
# of; if the project is already installed for it, it is used as it is. The installation fetches PyTorch and may compile
# fairseq.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
ensure_environment ""
run_command quickstart "$@"
