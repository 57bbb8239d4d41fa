"""Warnings and messages about how fairseq calls other libraries, which are not the user's to mend."""

from __future__ import annotations

import logging
import sys
import warnings

# Where fairseq has read data by workers, it leaves this in PYTHONWARNINGS, for every process that is started then.
_BY_FAIRSEQ = "ignore:semaphore_tracker:UserWarning"


def _are_wanted() -> bool:
    return bool(set(sys.warnoptions) - {_BY_FAIRSEQ})


def quiet_import_of_fairseq() -> None:
    """Hides what PyTorch 2.14 writes of ``torch.jit.script`` where fairseq is imported: for commands, not libraries.

    None where Python was given ``-W``. PyTorch calls it a warning of its own module, so that it has to be known by its
    text.

    For fairseq 0.12 with PyTorch 2.14 or later.
    """
    if not _are_wanted():
        warnings.filterwarnings("ignore", r"`torch\.jit\.script` is", FutureWarning)


def quiet_warnings() -> None:
    """Hides the page of warnings that fairseq 0.12 has Hydra and PyTorch write; none where Python was given ``-W``.

    An error would get lost in it. :func:`fairseq_plugins.register` calls it, when what it ignores itself is over.

    For fairseq 0.12.
    """
    if _are_wanted():
        return
    warnings.filterwarnings("ignore", category=UserWarning, module=r"hydra\.")
    warnings.filterwarnings("ignore", r"\s*'config' is validated against ConfigStore schema", UserWarning)
    for category in FutureWarning, DeprecationWarning:
        warnings.filterwarnings("ignore", category=category, module=r"fairseq\.")
    # It pins memory for GPUs whether there are any or not.
    warnings.filterwarnings("ignore", r"'pin_memory' argument is set as true but no accelerator", UserWarning)


def quiet_loggers() -> None:
    """Hides what importing fairseq has others log.

    A task asks for a package that nothing here needs, each time that it is imported. A model turns every library's
    debugging messages on, and matplotlib's search for a font has hundreds of them.

    For fairseq 0.12.
    """
    for name in "fairseq.tasks.text_to_speech", "matplotlib":
        logging.getLogger(name).setLevel(logging.WARNING)
