"""fairseq optimizers and learning rate schedulers; importing them tells fairseq of everything in this package."""

from .. import register

register()

from . import asgd, non_monotone, rmsprop  # noqa: E402

__all__ = ["asgd", "non_monotone", "rmsprop"]
