# What the scripts of this folder share; sourced, never run.
#
#   source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"

set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The comment at the head of the script that calls it, up to the first line that is no comment.
print_help() {
  awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"
}

print_version() {
  sed -n 's/^VERSION = "\(.*\)"$/fairseq-plugins \1/p' "$project/fairseq_plugins/versions.py"
}

fail() {
  echo "error: $*" >&2
  exit 1
}

# Sets $PYTHON: what the caller has set, else the checkout's own environment, else python3, which is that of an active
# environment.
find_python() {
  if [[ -z ${PYTHON:-} ]]; then
    if [[ -x $project/.venv/bin/python ]]; then
      PYTHON=$project/.venv/bin/python
    else
      PYTHON=python3
    fi
  fi
  command -v "$PYTHON" >/dev/null || fail "no '$PYTHON' found: run scripts/quickstart.sh, or name a Python with PYTHON=..."
}

# Sets $PYTHON to one that this project and the named distributions are installed for. Where $PYTHON is not, it is what
# .venv is made of, and everything is installed there.
#
#   ensure_environment "" && ensure_environment dev pytest pytest-xdist
ensure_environment() {
  local extras=$1
  shift
  find_python
  has_installed fairseq-plugins "$@" && return
  [[ -x $project/.venv/bin/python ]] || make_environment "$PYTHON"
  PYTHON=$project/.venv/bin/python
  has_installed fairseq-plugins "$@" && return
  PYTHON=$PYTHON "$project/scripts/install.sh" ${extras:+--extras "$extras"}
}

# Makes .venv with the Python that is given.
make_environment() {
  echo "making $project/.venv with $("$1" --version)"
  # A folder that is not whole would be taken for the environment the next time.
  trap 'rm -rf "$project/.venv"; exit 130' INT TERM
  "$1" -m venv "$project/.venv" || {
    rm -rf "$project/.venv"
    fail "'$1 -m venv' failed: on Debian and Ubuntu, install python3-venv; or name another Python with PYTHON=..."
  }
  trap - INT TERM
}

has_installed() {
  "$PYTHON" -c 'import sys; from importlib.metadata import version; [version(name) for name in sys.argv[1:]]' "$@" 2>/dev/null
}

# Becomes `fairseq-plugins COMMAND ARGUMENTS...`, so that signals reach Python and no shell is in between. The checkout
# comes first on Python's path: it is what the scripts belong to, whatever else is installed.
run_command() {
  find_python
  become "$PYTHON" -m fairseq_plugins "$@"
}

become() {
  export PYTHONPATH=$project${PYTHONPATH:+:$PYTHONPATH}
  # Ctrl-C waits until the package can answer it; env can do that since coreutils 8.31.
  local start=()
  ! env --block-signal=INT true 2>/dev/null || start=(env --block-signal=INT)
  exec ${start[@]+"${start[@]}"} "$@"
}

# Every script that sources this has it.
if [[ ${1:-} == --version ]]; then
  print_version
  exit 0
fi
