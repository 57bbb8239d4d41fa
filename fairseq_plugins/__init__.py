"""Recurrent and hybrid sequence-to-sequence architectures for fairseq: importing this package (or naming its folder with
``--user-dir``) registers them."""

from . import compat

compat.apply()  # before anything imports fairseq's parts

from . import models  # noqa: E402

__all__ = ["models"]
