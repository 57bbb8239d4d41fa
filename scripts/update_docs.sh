#!/usr/bin/env bash
# Makes docs/results.md, and the generated parts of README.md and docs/. --help says more.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
find_python
become "$PYTHON" -m fairseq_plugins.documentation "$@"
