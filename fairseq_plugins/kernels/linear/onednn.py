"""The linear map and its gradients in float32 by oneDNN.

PyTorch hands float32 products to MKL, which takes AVX-512 on Intel's CPUs only: there MKL is up to a third faster, on
AMD's oneDNN is a sixth to a third faster. A transposed weight is read where it lies, a transposed x is copied first. On
CPUs with AVX2 alone MKL is as fast, and copies nothing: it computes the weight's gradient there.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..checks import check_tensor
from ..second_derivatives import differentiable_once

# Below this many multiplications the call itself takes longer than what is saved.
_LEAST_PRODUCTS = 1 << 20


def refuses(x: Tensor, weight: Tensor) -> str | None:
    """Why oneDNN does not compute it, or None."""
    if x.device.type != "cpu":
        return "the tensors are not on the CPU"
    if x.dtype != torch.float32 or weight.dtype != torch.float32:
        return "they are not in float32"
    if x.dim() < 2 or x.numel() * weight.size(0) < _LEAST_PRODUCTS:
        return "the product is small"
    if torch.is_autocast_enabled("cpu"):
        return "autocast computes it in another precision"
    if not is_available():
        return "this PyTorch has no oneDNN, or it is turned off"
    if has_faster_mkl():
        return "MKL is faster on Intel's CPUs"
    return None


def is_available() -> bool:
    """Whether this PyTorch has oneDNN's linear map, and it is not turned off (``torch.backends.mkldnn.flags``)."""
    return bool(torch.backends.mkldnn.enabled) and _is_built()


@functools.cache
def _is_built() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@functools.cache
def has_faster_mkl() -> bool:
    """Whether PyTorch's own products are MKL's, on a CPU of which MKL takes all instructions."""
    information = Path("/proc/cpuinfo")
    vendor = information.read_text(encoding="utf-8", errors="replace") if information.exists() else platform.processor()
    return torch.backends.mkl.is_available() and "GenuineIntel" in vendor


@functools.cache
def has_fast_transposed_mkl() -> bool:
    """Whether MKL is faster where x is transposed: on CPUs of which it takes all instructions."""
    return torch.backends.mkl.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX2"


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (N, D), weight (F, D), bias (F,) or None, of any strides -> x weight^T + bias (N, F), without gradients."""
    # Of a bias it does not look at the strides.
    bias = None if bias is None else bias.contiguous()
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As :func:`fairseq_plugins.kernels.linear.linear`."""
    # oneDNN does not ask where they are, nor say how they do not fit.
    check_tensor("weight", weight, ("F", x.size(-1)), x)
    if bias is not None:
        check_tensor("bias", bias, (weight.size(0),), x)
    if not torch.is_grad_enabled():
        return product(x.flatten(0, -2), weight, bias).view(*x.shape[:-1], weight.size(0))
    result: Tensor = _Linear.apply(x, weight, bias)
    return result


def prepared_linear(weight: Tensor, bias: Tensor | None, rows: int) -> Callable[[Tensor], Tensor]:
    """As :func:`fairseq_plugins.kernels.linear.prepared_linear`: a weight that oneDNN has laid out for itself is
    multiplied faster, most of all by a few rows."""
    packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), rows)
    return lambda x: product(x, packed, bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x.flatten(0, -2), weight, bias).view(*x.shape[:-1], weight.size(0))

    @staticmethod
    @differentiable_once("reference")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        gradient = gradient.flatten(0, -2)
        return (
            product(gradient, weight.t()).view_as(x) if needs_x else None,
            _transposed_product(gradient, x.flatten(0, -2)) if needs_weight else None,
            gradient.sum(0) if needs_bias else None,
        )


def _transposed_product(x: Tensor, y: Tensor) -> Tensor:
    """x (N, F), y (N, D) -> x^T y (F, D). Copied is x^T; or y^T, and its product when that is added to a gradient."""
    if has_fast_transposed_mkl():
        return torch.mm(x.t(), y)
    if x.numel() <= y.numel() + x.size(1) * y.size(1):
        return product(x.t(), y.t())
    return product(y.t(), x.t()).t()
