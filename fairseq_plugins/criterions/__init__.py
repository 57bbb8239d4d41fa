"""Registers the criterions with fairseq."""

from . import activation_regularization, output_cross_entropy

__all__ = ["activation_regularization", "output_cross_entropy"]
