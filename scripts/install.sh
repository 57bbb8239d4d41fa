#!/usr/bin/env bash
# Installs this project and what it needs into .venv where that is there; else in an active environment (venv, or conda's
# but for base) into that one; else into .venv, which it makes of python3. The scripts use .venv by themselves;
# `source .venv/bin/activate` is for your own commands.
#
#   scripts/install.sh [--extras NAME[,NAME]] [PIP ARGUMENTS...]
#   PYTHON=python3.12 scripts/install.sh        into the environment that this Python belongs to
#
# PyTorch, NumPy and Cython come first: fairseq is compiled against the PyTorch that is already there, instead of
# fetching a second one. Further arguments go to both calls of pip. An installed PyTorch >= 2.5 is kept; otherwise
# $TORCH is installed (torch==2.13.0, the tested version, by default).
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
cd "$project"

own=$project/.venv/bin/python
is_own_missing=false
if [[ -n ${PYTHON:-} ]]; then
  python=$PYTHON
elif [[ -x $own ]]; then
  python=$own
else
  # That of an active environment comes first on the PATH.
  python=python3
  [[ -n ${VIRTUAL_ENV:-} || ${CONDA_DEFAULT_ENV:-base} != base ]] || is_own_missing=true
fi
torch=${TORCH:-torch==2.13.0}
extras="train,report"
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  print_help
  exit 0
fi
if [[ ${1:-} == --extras ]]; then
  [[ $# -ge 2 ]] || { echo "error: --extras needs a name: chinese, dev or workflow" >&2; exit 2; }
  extras="$extras,$2"
  shift 2
fi
command -v "$python" >/dev/null || fail "no '$python' found: install Python 3.10, 3.11 or 3.12, or name one with PYTHON=..."
"$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' ||
  fail "$("$python" --version) is not supported: name a Python 3.10, 3.11 or 3.12 with PYTHON=..."
if $is_own_missing; then
  make_environment "$python"
  python=$own
fi
if "$python" -c 'import sys, torch; sys.exit(tuple(map(int, torch.__version__.split("+")[0].split(".")[:2])) < (2, 5))' 2>/dev/null; then
  torch="torch"
fi

"$python" -m pip install "$torch" "numpy>=1.26" "cython>=3.0" "setuptools>=77,<81" wheel "$@"
# No debugging symbols: they take a third of the time in which fairseq is compiled.
CFLAGS="${CFLAGS:-} -g0" "$python" -m pip install --no-build-isolation -e ".[$extras]" "$@"
echo "installed for $(command -v "$python")"
