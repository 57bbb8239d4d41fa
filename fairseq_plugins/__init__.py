"""Recurrent and hybrid sequence-to-sequence architectures for fairseq: ``--user-dir fairseq_plugins``."""

from . import compat

compat.apply()
