"""Registers the criterions with fairseq."""

from . import output_cross_entropy, ranking_hinge, sequence_classification

__all__ = ["output_cross_entropy", "ranking_hinge", "sequence_classification"]
