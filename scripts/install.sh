#!/usr/bin/env bash
# Installs this project and what it needs into .venv where that is there; else in an active environment (venv, or conda's
# but for base) into that one; else into .venv, which it makes of python3, or of python3.12, 3.11 or 3.10 where python3 is
# another. The scripts use .venv by themselves; `source .venv/bin/activate` is for your own commands.
#
#   scripts/install.sh [--gpu] [--extras NAME[,NAME]] [PIP ARGUMENTS...]
#   PYTHON=python3.12 scripts/install.sh        into the environment that this Python belongs to
#
# PyTorch, NumPy and Cython come first: fairseq is compiled against the PyTorch that is already there, instead of
# fetching a second one. Further arguments go to both calls of pip. An installed PyTorch >= 2.5 is kept; otherwise
# $TORCH is installed (torch==2.13.0, the tested version, by default). --gpu has PyTorch's build for NVIDIA GPUs, some
# gigabytes, in the place of one for CPUs.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
cd "$project"

torch=${TORCH:-torch==2.13.0}
extras="train,report"
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  print_help
  exit 0
fi
gpu=
if [[ ${1:-} == --gpu ]]; then
  gpu=yes
  shift
fi
if [[ ${1:-} == --extras ]]; then
  [[ $# -ge 2 ]] || { echo "error: --extras needs a name: audio, chinese, dev, export, serve or workflow" >&2; exit 2; }
  extras="$extras,$2"
  shift 2
fi
if [[ -n ${PYTHON:-} ]]; then
  command -v "$PYTHON" >/dev/null || fail "no '$PYTHON' found: install Python 3.10, 3.11 or 3.12, or name one with PYTHON=..."
  require_supported "$PYTHON" "$PYTHON" "name another with PYTHON=..."
elif has_own; then
  PYTHON=$own
  require_own_supported
elif [[ -n ${VIRTUAL_ENV:-} || ${CONDA_DEFAULT_ENV:-base} != base ]]; then
  # That of the active environment comes first on the PATH.
  PYTHON=python3
  require_supported "$PYTHON" "the active environment's Python" "leave it (deactivate), or name a Python with PYTHON=..."
else
  find_supported_python
  make_environment "$PYTHON"
  PYTHON=$own
fi
if "$PYTHON" -c 'import sys, torch; sys.exit(tuple(map(int, torch.__version__.split("+")[0].split(".")[:2])) < (2, 5))' 2>/dev/null; then
  torch="torch"
fi
is_for_gpus() {
  "$PYTHON" -c 'import sys, torch; sys.exit(torch.version.cuda is None)' 2>/dev/null
}
if [[ $gpu && -z ${TORCH:-} ]] && ! is_for_gpus; then
  # Exactly this version: 2.13.0+cpu is another one.
  torch=torch===2.13.0
fi

"$PYTHON" -m pip install "$torch" "numpy>=1.26" "cython>=3.0" "setuptools>=77,<81" wheel "$@"
if [[ $gpu ]] && ! is_for_gpus; then
  fail "the PyTorch that was installed is built for CPUs: name an index that has builds for your driver with --index-url, or a version of one with TORCH=..."
fi
# No debugging symbols: they take a third of the time in which fairseq is compiled.
CFLAGS="${CFLAGS:-} -g0" "$PYTHON" -m pip install --no-build-isolation -e ".[$extras]" "$@"
echo "installed for $(command -v "$PYTHON")"
