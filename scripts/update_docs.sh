#!/usr/bin/env bash
# Makes docs/results/, docs/options.md and the table of models in README.md. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
find_python
become "$PYTHON" -m fairseq_plugins.documentation "$@"
