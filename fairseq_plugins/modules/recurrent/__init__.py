"""Recurrent networks behind one contract: one paper a file, each of which registers its kinds."""

from . import conventional, dilated, hierarchical_multiscale, higher_order, multi_channel, recurrently_controlled

__all__ = [
    "conventional",
    "dilated",
    "hierarchical_multiscale",
    "higher_order",
    "multi_channel",
    "recurrently_controlled",
]
