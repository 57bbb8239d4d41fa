"""Registers the criterions with fairseq."""

from . import output_cross_entropy

__all__ = ["output_cross_entropy"]
