"""Dropout on the fastest backend that takes it."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from .. import dispatch

__all__ = ["dropout", "relu_dropout"]


def dropout(x: Tensor, p: float, is_training: bool = True) -> Tensor:
    """Each element of x is zero with probability p, else x / (1 - p), as ``torch.nn.functional.dropout``.

    Args:
        x: of any shape.
        p: 0 ... 1, in multiples of 1 / 65536 on CPUs: by so little the probability, and 1 - p with it, may differ.
        is_training: x itself is returned otherwise.
    """
    if not is_training or p == 0:
        return x
    result: Tensor = dispatch.choose("dropout", x, p).module.dropout(x, p)
    return result


def relu_dropout(x: Tensor, p: float, is_training: bool = True) -> Tensor:
    """:func:`dropout` of max(0, x). Differentiable once."""
    if not is_training or p == 0:
        return F.relu(x)
    result: Tensor = dispatch.choose("dropout", x, p).module.relu_dropout(x, p)
    return result
