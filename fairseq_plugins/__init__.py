"""Recurrent and hybrid sequence-to-sequence architectures for fairseq.

Importing this package, or naming its folder with ``--user-dir``, registers them.
"""

import logging

# It would ask for a package that nothing here needs, each time that fairseq is imported.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

from . import compat  # noqa: E402

compat.apply()  # before anything imports fairseq's parts

from . import models  # noqa: E402

__all__ = ["models"]
