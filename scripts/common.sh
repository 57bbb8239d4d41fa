# What the scripts of this folder share; sourced, never run.
#
#   source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"

set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
own=$project/.venv/bin/python

# fairseq copies checkpoints inside an assert statement, which Python would leave out.
unset PYTHONOPTIMIZE

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

# Whether the checkout has its own environment, of whatever Python.
has_own() {
  [[ -x $own || -L $own ]]
}

# Whether a Python runs, and is one that this project supports.
is_supported() {
  "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null
}

# "Python 3.13.0", or that it does not run.
version_of() {
  "$1" --version 2>/dev/null || echo "no Python that runs"
}

# Ends the script unless a Python is supported; says what it is, and what to do.
require_supported() {
  is_supported "$1" || fail "$2 is $(version_of "$1"), and 3.10, 3.11 or 3.12 is needed: $3"
}

# The same of the checkout's own environment.
require_own_supported() {
  require_supported "$own" "the Python of $project/.venv" \
    "delete that folder (rm -r '$project/.venv') and run scripts/quickstart.sh or scripts/install.sh again"
}

# Sets $PYTHON to python3 where that is supported, else to the newest on the PATH that is.
find_supported_python() {
  for PYTHON in python3 python3.12 python3.11 python3.10; do
    ! is_supported "$PYTHON" || return 0
  done
  require_supported python3 "python3" "install one of these, or name it with PYTHON=..."
}

# Sets $PYTHON: what the caller has set, else the checkout's own environment, else python3, which is that of an active
# environment, or another one where python3 is not supported.
find_python() {
  if [[ -z ${PYTHON:-} ]]; then
    if has_own; then
      PYTHON=$own
      # Its link leads nowhere where the Python that it was made of has gone.
      [[ -x $own ]] || require_own_supported
    else
      find_supported_python
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
  if has_own; then
    require_own_supported
  else
    require_supported "$PYTHON" "$PYTHON" "name another with PYTHON=..."
    make_environment "$PYTHON"
  fi
  PYTHON=$own
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
  [[ $PYTHON != "$own" ]] || require_own_supported
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
