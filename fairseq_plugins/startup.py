"""How a command of ours starts. Standard library only: it comes before what takes long to import."""

from __future__ import annotations

import sys

from .errors import show_input_errors, unblock_interrupts
from .patches.messages import quiet_import_of_fairseq

_is_command = False


def prepare_command() -> None:
    """What the entry point of a command calls first of all, before its imports where they take long.

    Ctrl-C, input errors and missing packages are one sentence from then on, Ctrl-C is let through, and importing
    fairseq is quiet. Nothing is imported for it: :func:`fairseq_plugins.register` does that where it is needed.
    Further calls change nothing.
    """
    global _is_command
    _is_command = True
    show_input_errors()
    unblock_interrupts()
    quiet_import_of_fairseq()


def announce() -> None:
    """Says on a terminal what the next seconds are for, where a command is about to import PyTorch and fairseq."""
    if _is_command and "torch" not in sys.modules and sys.stderr.isatty():
        print("starting PyTorch and fairseq", file=sys.stderr)
