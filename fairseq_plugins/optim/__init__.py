"""fairseq optimizers and learning rate schedulers; importing them registers them."""

from . import asgd, averaged_weights, non_monotone, rmsprop

__all__ = ["asgd", "averaged_weights", "non_monotone", "rmsprop"]

averaged_weights.use_averaged_weights()
