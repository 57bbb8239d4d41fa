"""fairseq criterions; importing them tells fairseq of everything in this package."""

from .. import register

register()

from . import activation_regularization, output_cross_entropy, ranking_hinge, sequence_classification  # noqa: E402

__all__ = ["activation_regularization", "output_cross_entropy", "ranking_hinge", "sequence_classification"]
