"""fairseq optimizers and learning rate schedulers; importing them registers them."""

from . import asgd, averaged_weights, non_monotone

__all__ = ["asgd", "averaged_weights", "non_monotone"]

averaged_weights.use_averaged_weights()
