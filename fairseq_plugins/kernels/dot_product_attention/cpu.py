"""Attention of a few queries on CPUs in C++ (``cpu.cpp``), compiled on first use: the steps of a decoder.

PyTorch's own copies the keys of each head into blocks for matrix products, which takes longer than the products of a
few queries.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType
from typing import cast

import torch
from torch import Tensor

from .. import extension

SOURCE = Path(__file__).with_name("cpu.cpp")
_MOST_QUERIES = 16


@functools.cache
def compiled() -> ModuleType | None:
    """The compiled module; None, after a warning, where it cannot be compiled."""
    return extension.load_where_possible(SOURCE)


def refuses(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> str | None:
    """Why it does not take the attention, or None: it computes on CPUs, in single and double precision, without
    gradients."""
    if query.device.type != "cpu":
        return f"it computes on CPUs, and the query is on {query.device.type}"
    if query.size(2) > _MOST_QUERIES:
        return f"it takes up to {_MOST_QUERIES} queries"
    if query.dtype not in (torch.float32, torch.float64) or not query.dtype == keys.dtype == values.dtype:
        return "it takes single or double precision, the same for all"
    read = (query, keys, values) if mask is None else (query, keys, values, mask)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in read):
        return "it has no gradients"
    if torch.is_autocast_enabled("cpu"):
        return "autocast computes it in another precision"
    if query.numel() == 0 or keys.numel() == 0:
        return "there is nothing to compute"
    return None if compiled() is not None else f"it is off here: {extension.reason(SOURCE)}"


def dot_product_attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """See :func:`fairseq_plugins.kernels.dot_product_attention.dot_product_attention`."""
    module = cast(ModuleType, compiled())
    result: Tensor = module.dot_product_attention(query, keys, values, mask, scale)
    return result
