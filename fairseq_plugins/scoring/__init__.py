"""Scorers that fairseq does not have; importing them registers them for ``--scoring``."""

from . import rouge

__all__ = ["rouge"]
