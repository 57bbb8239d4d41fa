"""Additive attention on CPUs in C++ (``cpu.cpp``), compiled on first use."""

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


def refuses(query: Tensor, keys: Tensor, score: Tensor) -> str | None:
    """Why it does not take the attention, or None: it computes on CPUs, in single and double precision."""
    if query.device.type != "cpu":
        return f"it computes on CPUs, and the query is on {query.device.type}"
    if query.dtype not in (torch.float32, torch.float64) or not query.dtype == keys.dtype == score.dtype:
        return "it takes single or double precision, the same for all"
    if query.numel() == 0 or keys.numel() == 0:
        return "there is nothing to compute"
    return None if compiled() is not None else f"it is off here: {extension.reason(SOURCE)}"


def additive_attention(
    query: Tensor, keys: Tensor, values: Tensor, score: Tensor, padding_mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """See :func:`fairseq_plugins.kernels.additive_attention.additive_attention`."""
    weights = _Weights.apply(compiled(), query, keys, score, padding_mask)
    return torch.bmm(weights, values), weights


class _Weights(torch.autograd.Function):
    """softmax over s of v^T tanh(q(t) + k(s)); the tanh is computed again in the backward pass, never stored."""

    @staticmethod
    def forward(
        ctx: Any, module: ModuleType, query: Tensor, keys: Tensor, score: Tensor, padding_mask: Tensor | None
    ) -> Tensor:
        query, keys, score = query.contiguous(), keys.contiguous(), score.contiguous()
        weights: Tensor = module.forward(query, keys, score, padding_mask)
        ctx.module = module
        ctx.save_for_backward(query, keys, score, weights)
        return weights

    @staticmethod
    @differentiable_once("reference")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.module.backward(gradient, *ctx.saved_tensors), None
