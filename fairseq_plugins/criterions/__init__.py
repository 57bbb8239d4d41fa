"""Registers the criterions with fairseq."""

from . import activation_regularization, output_cross_entropy, ranking_hinge, sequence_classification

__all__ = ["activation_regularization", "output_cross_entropy", "ranking_hinge", "sequence_classification"]
