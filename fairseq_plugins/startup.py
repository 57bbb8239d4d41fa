"""How a command of ours starts. Standard library only: it comes before what takes long to import."""

from __future__ import annotations

import sys
import warnings

from .errors import show_input_errors, unblock_interrupts

# Where fairseq has read data by workers, it leaves this in PYTHONWARNINGS, for every process that is started then.
_BY_FAIRSEQ = "ignore:semaphore_tracker:UserWarning"

_is_command = False


def prepare_command() -> None:
    """What the entry point of a command calls first of all, before its other imports.

    From then on Ctrl-C, which the scripts have kept waiting, is let through and is one sentence, as input errors and
    missing packages are. What PyTorch 2.14 writes of ``torch.jit.script`` where fairseq is imported is hidden, unless
    Python was given ``-W``: PyTorch calls it a warning of its own module, so that it has to be known by its text.

    Nothing is imported for it: :func:`fairseq_plugins.register` does that where it is needed. Further calls change
    nothing.
    """
    global _is_command
    _is_command = True
    show_input_errors()
    unblock_interrupts()
    if not are_warnings_wanted():
        warnings.filterwarnings("ignore", r"`torch\.jit\.script` is", FutureWarning)


def are_warnings_wanted() -> bool:
    """Whether Python was given ``-W``, or PYTHONWARNINGS."""
    return bool(set(sys.warnoptions) - {_BY_FAIRSEQ})


def announce() -> None:
    """Says on a terminal what the next seconds are for, where a command is about to import PyTorch and fairseq."""
    if _is_command and "torch" not in sys.modules and sys.stderr.isatty():
        print("starting PyTorch and fairseq", file=sys.stderr)
