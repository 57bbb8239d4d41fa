#!/usr/bin/env bash
# Makes docs/results.md, and the generated parts of README.md and docs/, of what the project knows: results/, where
# scripts/evaluate.sh --record keeps runs, and configs/tables, the papers' figures.
#
#   scripts/update_docs.sh [--check]
#
#   --check  writes nothing; says what is stale, with exit status 1
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ ${1:-} != --help && ${1:-} != -h ]] || { print_help; exit 0; }
exec_module documentation "$@"
