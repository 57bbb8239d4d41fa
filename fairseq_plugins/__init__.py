"""Recurrent and hybrid sequence-to-sequence architectures for fairseq.

Importing this package, or naming its folder with ``--user-dir``, registers them. It registers nothing where fairseq is
not installed. With ``FAIRSEQ_PLUGINS_REGISTER=0`` in the environment, and in commands of its own (``python -m
fairseq_plugins.…``), :func:`register` does it where it is needed: what needs neither fairseq nor PyTorch does not wait.
"""

import importlib.util
import logging
import os
import sys
import warnings
from typing import TYPE_CHECKING

from .compat.quiet_warnings import quiet_import_of_fairseq, quiet_warnings
from .errors import show_input_errors, unblock_interrupts
from .versions import VERSION as __version__

if TYPE_CHECKING:
    from .trained import Ensemble

__all__ = ["__version__", "load", "register"]

# It would ask for a package that nothing here needs, each time that fairseq is imported.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
# A module of fairseq turns every library's debugging messages on; matplotlib's search for a font has hundreds of them.
logging.getLogger("matplotlib").setLevel(logging.WARNING)


def register() -> None:
    """Tells fairseq of everything in this package, once; further calls change nothing."""
    show_input_errors()
    if _is_looked_through and "torch" not in sys.modules and sys.stderr.isatty():
        print("starting PyTorch and fairseq", file=sys.stderr)
    with warnings.catch_warnings():
        # What fairseq still uses of PyTorch (torch.jit.script) is not the user's to mend.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        from . import compat, extensions, features

        compat.apply()  # before anything imports fairseq's parts
        features.apply()
        extensions.load()  # before the models make options of the layers that there are

        from . import criterions, models, optim, tasks  # noqa: F401 - importing them registers them
        from .scoring import fairseq_scorers  # noqa: F401
    quiet_warnings()  # here, where its filters outlast the ones above


def load(path: "str | os.PathLike[str]", data: "str | os.PathLike[str] | None" = None) -> "Ensemble":
    """A trained model, ready to translate: ``load("work/quickstart/mc_rnn_3").translate(["Der Hund schläft."])``.

    See :func:`.trained.load`.
    """
    register()
    from .trained import load

    return load(path, data)


# Taken out of the environment: fairseq's own commands, which this process may start, find everything by importing.
_is_wanted = os.environ.pop("FAIRSEQ_PLUGINS_REGISTER", "1") != "0"
# While Python looks for the module that ``-m`` names, this is where the name of its file is going to.
_is_looked_through = sys.argv[:1] == ["-m"]
if _is_looked_through:
    quiet_import_of_fairseq()
    show_input_errors()  # Ctrl-C, while the command is imported
    unblock_interrupts()
if _is_wanted and not _is_looked_through and importlib.util.find_spec("fairseq") is not None:
    register()
