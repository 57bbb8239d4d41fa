"""Recurrent and hybrid sequence-to-sequence architectures for fairseq.

Importing this package, or naming its folder with ``--user-dir``, registers them.
"""

import logging
import warnings

# It would ask for a package that nothing here needs, each time that fairseq is imported.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
# A module of fairseq turns every library's debugging messages on; matplotlib's search for a font has hundreds of them.
logging.getLogger("matplotlib").setLevel(logging.WARNING)

with warnings.catch_warnings():
    # What fairseq still uses of PyTorch (torch.jit.script) is not the user's to mend.
    warnings.simplefilter("ignore", FutureWarning)
    warnings.simplefilter("ignore", DeprecationWarning)
    from . import compat, features

    compat.apply()  # before anything imports fairseq's parts
    features.apply()

    from . import models, scoring

__all__ = ["models", "scoring"]
