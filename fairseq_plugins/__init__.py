"""Recurrent and hybrid sequence-to-sequence architectures for fairseq: importing this package (or naming its folder with
``--user-dir``) registers them."""

from . import models

__all__ = ["models"]
