"""Recurrent and hybrid sequence-to-sequence architectures for fairseq.

Importing this package changes nothing and imports neither fairseq nor PyTorch. fairseq learns of everything in it by
:func:`register`. So it does when it imports this folder for ``--user-dir``, or a program imports the models:
``criterions``, ``models``, ``optim`` and ``tasks`` call :func:`register`, whichever comes first.
"""

import warnings
from typing import TYPE_CHECKING

from .versions import VERSION as __version__  # noqa: N811 - the name that packages give it

if TYPE_CHECKING:
    from pathlib import Path

    from .decoding.translation import TranslationModel

__all__ = ["__version__", "load", "register"]


def register() -> None:
    """Tells fairseq of everything in this package, and mends what it needs of fairseq (:mod:`.patches`).

    From then on input errors that nobody catches are shown as one sentence (``sys.excepthook``). Further calls change
    nothing. It may be called while it is at work: what it imports calls it.

    Raises:
        ImportError: fairseq is not installed.
        InputError: an extension is missing or cannot be imported.
    """
    from . import startup
    from .errors import show_input_errors
    from .patches.messages import quiet_warnings

    show_input_errors()
    startup.announce()
    with warnings.catch_warnings(), startup.paused_collection():
        # What fairseq still uses of PyTorch (torch.jit.script) is not the user's to mend.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        from . import extensions, patches

        patches.apply()  # before anything imports fairseq's parts
        extensions.load()  # before the models make options of the layers that there are

        from . import criterions, models, optim, tasks  # noqa: F401 - importing them registers them
        from .scoring import fairseq_scorers  # noqa: F401
    quiet_warnings()  # here, where its filters outlast the ones above


def load(path: "str | Path", data: "str | Path | None" = None) -> "TranslationModel":
    """A trained model, ready to translate: ``load("work/quickstart/mc_rnn_3").translate(["Der Hund schläft."])``.

    See :func:`.decoding.translation.load`.
    """
    from .checkpoints import checkpoints_of, load_extensions_of

    load_extensions_of(checkpoints_of(path))  # before the models make options of the layers that there are
    register()
    from .decoding.translation import load

    return load(path, data)
