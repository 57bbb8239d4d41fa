# What the scripts of this folder share; sourced, never run.
#
#   source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The comment at the head of the script that calls it, up to the first line that is no comment.
print_help() {
  awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"
}

fail() {
  echo "error: $*" >&2
  exit 1
}

# Sets $PYTHON: what the caller has set, else the checkout's own environment, else python3.
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

# Becomes `python -m fairseq_plugins.MODULE ARGUMENTS...`, so that signals reach Python and no shell stands between.
# The environment's Python finds the installed package; the checkout comes first where it is not installed.
exec_module() {
  find_python
  export PYTHONPATH=$project${PYTHONPATH:+:$PYTHONPATH}
  exec "$PYTHON" -m "fairseq_plugins.$1" "${@:2}"
}
