"""Warnings and messages about how fairseq calls other libraries, which are not the user's to mend."""

from __future__ import annotations

import logging
import warnings

from ..startup import are_warnings_wanted


def quiet_warnings() -> None:
    """Hides the page of warnings that fairseq 0.12 has Hydra and PyTorch write; none where Python was given ``-W``.

    An error would get lost in it. :func:`fairseq_plugins.register` calls it, when what it ignores itself is over.

    For fairseq 0.12.
    """
    if are_warnings_wanted():
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
