"""The linear map and its gradients in float32 by oneDNN.

PyTorch hands float32 products to MKL, which takes AVX-512 on Intel's CPUs only: on AMD's, oneDNN is a sixth to a third
faster. It reads transposed matrices where they lie, so nothing is copied.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

# Below this many multiplications the call itself takes longer than what is saved.
_LEAST_PRODUCTS = 1 << 20


def refuses(x: Tensor, weight: Tensor) -> str | None:
    """Why oneDNN does not compute it, or None."""
    if x.device.type != "cpu":
        return "the tensors are not on the CPU"
    if x.dtype != torch.float32 or weight.dtype != torch.float32:
        return "they are not in float32"
    if x.numel() * weight.size(0) < _LEAST_PRODUCTS:
        return "the product is small"
    if torch.is_autocast_enabled("cpu"):
        return "autocast computes it in another precision"
    if not is_available():
        return "this PyTorch has no oneDNN, or it is turned off"
    return None


def is_available() -> bool:
    """Whether this PyTorch has oneDNN's linear map, and it is not turned off (``torch.backends.mkldnn.flags``)."""
    return torch.backends.mkldnn.enabled and _is_built()


@functools.cache
def _is_built() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (N, D), weight (F, D), bias (F,) or None, of any strides -> x weight^T + bias (N, F), without gradients."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As :func:`fairseq_plugins.kernels.linear.linear`."""
    return _Linear.apply(x, weight, bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x.flatten(0, -2), weight, bias).view(*x.shape[:-1], weight.size(0))

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        gradient = gradient.flatten(0, -2)
        return (
            product(gradient, weight.t()).view_as(x) if needs_x else None,
            product(gradient.t(), x.flatten(0, -2).t()) if needs_weight else None,
            gradient.sum(0) if needs_bias else None,
        )
