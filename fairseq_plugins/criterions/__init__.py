"""fairseq criterions; importing them tells fairseq of everything in this package."""

from .. import register

register()

from . import (  # noqa: E402
    activation_regularization,
    answer_span,
    output_cross_entropy,
    r_drop,
    ranking_hinge,
    sequence_classification,
)

__all__ = [
    "activation_regularization",
    "answer_span",
    "output_cross_entropy",
    "r_drop",
    "ranking_hinge",
    "sequence_classification",
]
