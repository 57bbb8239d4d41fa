"""x W^T + b on the fastest backend that takes it."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from .. import dispatch

__all__ = ["linear", "prepared_linear"]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., D), weight (F, D), bias (F,) or None -> (..., F), as ``torch.nn.functional.linear``.

    Differentiable once.

    Raises:
        ValueError, RuntimeError: their sizes, precisions or devices do not fit each other.
    """
    # torch says nothing of a weight on the meta device.
    if x.device != weight.device or (bias is not None and bias.device != x.device):
        raise ValueError(f"x, weight and bias must be on one device, not x on {x.device}, weight on {weight.device}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias must be of shape {tuple(weight.shape[:1])}, not {tuple(bias.shape)}")
    result: Tensor = dispatch.choose("linear", x, weight).module.linear(x, weight, bias)
    return result


def prepared_linear(weight: Tensor, bias: Tensor | None, rows: int) -> Callable[[Tensor], Tensor]:
    """:func:`linear` without gradients, for many x (B, D) of about so many rows (any number works): what they have in
    common is prepared once. The weight must not change meanwhile."""
    backend = dispatch.choose("linear", weight.new_empty(()).expand(rows, weight.size(1)), weight).module
    product: Callable[[Tensor], Tensor] = backend.prepared_linear(weight, bias, rows)
    return product
