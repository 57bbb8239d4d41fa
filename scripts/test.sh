#!/usr/bin/env bash
# Runs the tests but for the slow ones, with three processes.
#
#   scripts/test.sh [PYTEST ARGUMENTS...]        for example: scripts/test.sh tests/experiments -k bleu
#   scripts/test.sh -m slow                      the slow ones
#
# pytest by itself runs the fast ones alone.
#
# Installs what the tests need into .venv (see scripts/quickstart.sh) if it is not there yet.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ ${1:-} != --help && ${1:-} != -h ]] || { print_help; exit 0; }
ensure_environment dev pytest pytest-timeout pytest-xdist hypothesis
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} PYTHONPATH=$project${PYTHONPATH:+:$PYTHONPATH}
cd "$project"
# Whole files at a time: their fixtures, some of which train models, are made once. In the order of tests/conftest.py.
# Three of them for two cores: they wait for commands a quarter of their time.
exec "$PYTHON" -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not slow" "$@"
