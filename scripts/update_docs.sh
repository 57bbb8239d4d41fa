#!/usr/bin/env bash
# Makes docs/results/, docs/options.md, and README's table of models and part about the quick start. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
find_python
become "$PYTHON" -m fairseq_plugins.documentation "$@"
