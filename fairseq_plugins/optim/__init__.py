"""fairseq optimizers and learning rate schedulers; importing them registers them."""

from . import rmsprop

__all__ = ["rmsprop"]
