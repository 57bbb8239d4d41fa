"""How a command of ours starts. Standard library only: it comes before what takes long to import."""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import show_input_errors, unblock_interrupts

# Where fairseq has read data by workers, it leaves this in PYTHONWARNINGS, for every process that is started then.
_BY_FAIRSEQ = "ignore:semaphore_tracker:UserWarning"

_is_command = False


def prepare_command() -> None:
    """What the entry point of a command calls first of all, before its other imports.

    From then on Ctrl-C, which the scripts have kept waiting, is let through and is one sentence, as input errors and
    missing packages are. What PyTorch 2.14 writes of ``torch.jit.script`` where fairseq is imported is hidden, unless
    Python was given ``-W``: PyTorch calls it a warning of its own module, so that it has to be known by its text.

    Standard output and error are UTF-8 whatever the locale says, since text is in any language. One that is closed
    (``>&-``) leads nowhere.

    Nothing is imported for it: :func:`fairseq_plugins.register` does that where it is needed. Further calls change
    nothing.
    """
    global _is_command
    _is_command = True
    _open_streams()
    show_input_errors()
    unblock_interrupts()
    if not are_warnings_wanted():
        warnings.filterwarnings("ignore", r"`torch\.jit\.script` is", FutureWarning)


@contextmanager
def paused_collection() -> Iterator[None]:
    """Garbage is not collected within. Imports make a great many objects that stay: looking through them again and
    again takes a sixth of a command's start."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def _open_streams() -> None:
    for number, (name, errors) in enumerate([("stdout", "surrogateescape"), ("stderr", "backslashreplace")], 1):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            # Under its own number, which the next file would get, and a child process takes for the stream.
            os.dup2(nowhere, number)
            if nowhere != number:
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))
        elif isinstance(stream, io.TextIOWrapper):
            # Names of files may hold bytes that are no UTF-8.
            stream.reconfigure(encoding="utf-8", errors=errors)


def are_warnings_wanted() -> bool:
    """Whether Python was given ``-W``, or PYTHONWARNINGS."""
    return bool(set(sys.warnoptions) - {_BY_FAIRSEQ})


def announce() -> None:
    """Says on a terminal what the next seconds are for, where a command is about to import PyTorch and fairseq."""
    if _is_command and "torch" not in sys.modules and sys.stderr.isatty():
        print("starting PyTorch and fairseq", file=sys.stderr)
