"""Dropout on CPUs, with 16 random bits for each element.

PyTorch draws a number in double precision for each, which takes several times as long as everything else in dropout and
a tenth of a training step of DPN-S2S.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_VALUES = 1 << 16
# Nearer to 0 or 1, a step of 1 / 65536 would be more than a hundredth of the probability.
_LEAST = 100 / _VALUES


def refuses(x: Tensor, p: float) -> str | None:
    """Why it does not take x, or None."""
    if x.device.type != "cpu":
        return "the tensor is not on the CPU"
    if not _LEAST <= p <= 1 - _LEAST:
        return "16 bits are too few for a probability so near to 0 or 1"
    return None


def dropout(x: Tensor, p: float) -> Tensor:
    """As :func:`fairseq_plugins.kernels.dropout.dropout`."""
    dropped = dropped_numbers(p)
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device).random_(-(1 << 63), None)
    numbers = words.view(torch.int16)[: x.numel()].view(x.shape)
    kept = (numbers >= dropped - _VALUES // 2).view(torch.uint8).to(x.dtype)
    return x * kept.mul_(scale(dropped))


def relu_dropout(x: Tensor, p: float) -> Tensor:
    """As :func:`fairseq_plugins.kernels.dropout.relu_dropout`."""
    return dropout(F.relu(x), p)


def dropped_numbers(p: float) -> int:
    """How many of the 65536 numbers drop an element with probability p."""
    return round(p * _VALUES)


def scale(dropped: int) -> float:
    """What elements are multiplied by that so many numbers do not drop."""
    return _VALUES / (_VALUES - dropped)
