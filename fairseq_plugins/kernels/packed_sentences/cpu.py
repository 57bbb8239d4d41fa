"""Packed sentences on CPUs in C++ (``cpu.cpp``), compiled on first use."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from .. import extension
from ..second_derivatives import differentiable_once

SOURCE = Path(__file__).with_name("cpu.cpp")


@functools.cache
def compiled() -> ModuleType | None:
    """The compiled module; None, after a warning, where it cannot be compiled."""
    return extension.load_where_possible(SOURCE)


def refuses(x: Tensor) -> str | None:
    """Why it does not take sentences of this precision and device, or None."""
    if x.device.type != "cpu":
        return f"it computes on CPUs, and the tokens are on {x.device.type}"
    if x.dtype not in (torch.float32, torch.float64) or torch.is_autocast_enabled("cpu"):
        return "it takes single or double precision"
    return None if compiled() is not None else f"it is off here: {extension.reason(SOURCE)}"


def attention(
    query: Tensor,
    memory: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    heads: int,
    scale: float,
    is_causal: bool,
) -> Tensor:
    """As :func:`fairseq_plugins.kernels.packed_sentences.packed_attention`."""
    context: Tensor = _Attention.apply(compiled(), query, memory, query_offsets, key_offsets, heads, scale, is_causal)
    return context


def windows(x: Tensor, offsets: Tensor, width: int, before: int) -> Tensor:
    """As :func:`fairseq_plugins.kernels.packed_sentences.windows`."""
    window: Tensor = _Windows.apply(compiled(), x, offsets, width, before)
    return window


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        module: ModuleType,
        query: Tensor,
        memory: Tensor,
        query_offsets: Tensor,
        key_offsets: Tensor,
        *options: Any,
    ) -> Tensor:
        ctx.module, ctx.options = module, options
        inputs = query, memory, query_offsets, key_offsets
        ctx.save_for_backward(*inputs)
        context: Tensor = module.attention(*inputs, *options)
        return context

    @staticmethod
    @differentiable_once("reference")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.module.attention_backward(gradient, *ctx.saved_tensors, *ctx.options)
        return None, *gradients, None, None, *[None] * len(ctx.options)


class _Windows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, module: ModuleType, x: Tensor, offsets: Tensor, *options: Any) -> Tensor:
        ctx.module, ctx.options = module, options
        ctx.save_for_backward(offsets)
        window: Tensor = module.windows(x, offsets, *options)
        return window

    @staticmethod
    @differentiable_once("reference")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient_of_x = ctx.module.windows_backward(gradient, *ctx.saved_tensors, *ctx.options)
        return None, gradient_of_x, None, *[None] * len(ctx.options)
