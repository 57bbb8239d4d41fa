"""PyTorch's own linear map."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor


def refuses(x: Tensor, weight: Tensor) -> str | None:
    """Nothing: it takes whatever PyTorch takes."""
    return None


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As :func:`fairseq_plugins.kernels.linear.linear`."""
    return F.linear(x, weight, bias)


def prepared_linear(weight: Tensor, bias: Tensor | None, rows: int) -> Callable[[Tensor], Tensor]:
    """As :func:`fairseq_plugins.kernels.linear.prepared_linear`."""
    return lambda x: F.linear(x, weight, bias)
