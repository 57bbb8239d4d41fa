"""Dropout on CPUs in C++ (``cpu.cpp``), compiled on first use: 16 random bits for each element, and no mask."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from .. import extension
from ..second_derivatives import differentiable_once
from . import random_bits

SOURCE = Path(__file__).with_name("cpu.cpp")


@functools.cache
def compiled() -> ModuleType | None:
    """The compiled module; None, after a warning, where it cannot be compiled."""
    return extension.load_where_possible(SOURCE)


def refuses(x: Tensor, p: float) -> str | None:
    """Why it does not take x, or None."""
    if x.dtype not in (torch.float32, torch.float64):
        return "it takes single or double precision"
    reason = random_bits.refuses(x, p)
    if reason is not None or compiled() is not None:
        return reason
    return f"it is off here: {extension.reason(SOURCE)}"


def dropout(x: Tensor, p: float) -> Tensor:
    """As :func:`fairseq_plugins.kernels.dropout.dropout`."""
    dropped = random_bits.dropped_numbers(p)
    result: Tensor = _Dropped.apply(x, dropped, random_bits.scale(dropped), _module().draw_seed())
    return result


def relu_dropout(x: Tensor, p: float) -> Tensor:
    """As :func:`fairseq_plugins.kernels.dropout.relu_dropout`."""
    dropped = random_bits.dropped_numbers(p)
    result: Tensor = _ReluDropped.apply(x, dropped, random_bits.scale(dropped))
    return result


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *options: Any) -> Tensor:
        ctx.options = options
        y: Tensor = _module().dropped(x, *options, False)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        # The map is linear, and its own gradient.
        return _Dropped.apply(gradient, *ctx.options), None, None, None


class _ReluDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int, scale: float) -> Tensor:
        y: Tensor = _module().dropped(x, dropped, scale, _module().draw_seed(), True)
        ctx.scale = scale
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @differentiable_once("random_bits")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (y,) = ctx.saved_tensors
        return _module().relu_backward(gradient, y, ctx.scale), None, None


def _module() -> Any:
    return compiled()
