"""The paths of networks of several paths (DPN-S2S and more of its kind) behind one contract: one kind of path a file,
which registers itself, and the gate that fuses them."""

from . import convolutional, self_attention, recurrent  # isort: skip  # paths are in this order everywhere

__all__ = ["convolutional", "recurrent", "self_attention"]
