"""Recurrent networks behind one contract: one paper a file, each of which registers its kinds."""

from . import conventional, higher_order, multi_channel

__all__ = ["conventional", "higher_order", "multi_channel"]
