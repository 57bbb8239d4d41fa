"""PyTorch's own dropout."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def refuses(x: Tensor, p: float) -> str | None:
    """Nothing: it takes whatever PyTorch takes."""
    return None


def dropout(x: Tensor, p: float) -> Tensor:
    """As :func:`fairseq_plugins.kernels.dropout.dropout`."""
    return F.dropout(x, p)


def relu_dropout(x: Tensor, p: float) -> Tensor:
    """As :func:`fairseq_plugins.kernels.dropout.relu_dropout`."""
    return F.dropout(F.relu(x), p)
