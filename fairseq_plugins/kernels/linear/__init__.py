"""x W^T + b on the fastest backend that takes it."""

from __future__ import annotations

from torch import Tensor

from .. import dispatch

__all__ = ["linear"]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., D), weight (F, D), bias (F,) or None -> (..., F), as ``torch.nn.functional.linear``.

    Differentiable once.

    Raises:
        ValueError, RuntimeError: their sizes, precisions or devices do not fit each other.
    """
    return dispatch.choose("linear", x, weight).module.linear(x, weight, bias)
