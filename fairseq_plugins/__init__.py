"""Recurrent and hybrid sequence-to-sequence architectures for fairseq.

Importing this package, or naming its folder with ``--user-dir``, registers them. It registers nothing where fairseq is
not installed, or with ``FAIRSEQ_PLUGINS_REGISTER=0`` in the environment until :func:`register` is called: so commands
that do not need fairseq and PyTorch do not wait for them.
"""

import importlib.util
import logging
import os
import warnings

from .versions import VERSION as __version__

__all__ = ["__version__", "register"]

# It would ask for a package that nothing here needs, each time that fairseq is imported.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
# A module of fairseq turns every library's debugging messages on; matplotlib's search for a font has hundreds of them.
logging.getLogger("matplotlib").setLevel(logging.WARNING)


def register() -> None:
    """Tells fairseq of everything in this package, once; further calls change nothing."""
    with warnings.catch_warnings():
        # What fairseq still uses of PyTorch (torch.jit.script) is not the user's to mend.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        from . import compat, extensions, features

        compat.apply()  # before anything imports fairseq's parts
        features.apply()
        extensions.load()  # before the models make options of the layers that there are

        from . import criterions, models  # noqa: F401 - importing them registers them
        from .scoring import fairseq_scorers  # noqa: F401


# Taken out of the environment: fairseq's own commands, which this process may start, find everything by importing.
if os.environ.pop("FAIRSEQ_PLUGINS_REGISTER", "1") != "0" and importlib.util.find_spec("fairseq") is not None:
    register()
