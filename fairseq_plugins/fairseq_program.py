"""Runs one of fairseq's programs as Python would, ready some seconds sooner: two of its imports are deferred.

    python fairseq_plugins/fairseq_program.py PROGRAM [ARGUMENTS...]

PROGRAM is the file of a command (``…/bin/fairseq-train``), or a module (``fairseq_cli.preprocess``). The repair is that
of ``patches/deferred_imports.py``, which comes too late with ``--user-dir``: fairseq is imported before it is read.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

_DEFERRED_IMPORTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "patches", "deferred_imports.py")


def python_command(program: str, arguments: Sequence[str]) -> list[str]:
    """The command by which this Python runs a program of fairseq so."""
    return [sys.executable, os.path.abspath(__file__), program, *arguments]


def environment() -> dict[str, str]:
    """Of commands which this process starts: ours without PYTHONOPTIMIZE, which leaves ``assert`` statements out, and
    with UTF-8 for every stream and file, whatever the locale says."""
    names = ("PYTHONOPTIMIZE", "PYTHONIOENCODING")
    return {**{name: value for name, value in os.environ.items() if name not in names}, "PYTHONUTF8": "1"}


def _become(program: str) -> None:
    is_file = os.path.isfile(program)
    if not getattr(sys.flags, "safe_path", False):
        # Python has put this file's folder there, in which the package is not found and its parts are.
        sys.path[0] = os.path.dirname(os.path.abspath(program)) if is_file else os.getcwd()
    # Not imported: the package has to be new to fairseq when --user-dir names it.
    runpy.run_path(_DEFERRED_IMPORTS)["defer_imports"]()
    del sys.argv[0]
    if is_file:
        # Processes that it spawns begin with the same file, as they do without us.
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _become(sys.argv[1])
