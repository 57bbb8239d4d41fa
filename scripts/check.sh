#!/usr/bin/env bash
# Checks an installation in some 20 seconds: versions, compiler, CPU, GPUs, free disk, which backend each recurrent layer
# runs on and why, and whether it computes what its reference does, forwards and backwards. Says what to do where something
# is wrong; the exit status is then 1. Compiling the C++ kernels, once, takes two minutes more; where that failed before, it
# is tried again.
#
#   scripts/check.sh
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ ${1:-} != --help && ${1:-} != -h ]] || { print_help; exit 0; }
find_python
[[ $PYTHON != "$own" ]] || require_own_supported
export PYTHONPATH=$project${PYTHONPATH:+:$PYTHONPATH} FAIRSEQ_PLUGINS_REGISTER=0
exec "$PYTHON" -m fairseq_plugins.installation "$@"
