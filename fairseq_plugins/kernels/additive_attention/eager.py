"""Additive attention in PyTorch's operations: on any device, in any precision."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def refuses(query: Tensor, keys: Tensor, score: Tensor) -> str | None:
    """It takes everything."""
    return None


def additive_attention(
    query: Tensor, keys: Tensor, values: Tensor, score: Tensor, padding_mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """See :func:`fairseq_plugins.kernels.additive_attention.additive_attention`."""
    if padding_mask is not None:
        # Its gradient would be NaN where the key is.
        keys = keys.masked_fill(padding_mask.unsqueeze(-1), 0)
    energies = torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ score
    if padding_mask is not None:
        # Not -inf: in a row of nothing but padding all weights and gradients would be NaN.
        energies = energies.masked_fill(padding_mask.unsqueeze(1), torch.finfo(energies.dtype).min)
    weights = F.softmax(energies, dim=-1, dtype=torch.promote_types(energies.dtype, torch.float32)).type_as(energies)
    if padding_mask is not None:
        weights = weights.masked_fill(padding_mask.unsqueeze(1), 0)
    return torch.bmm(weights, values), weights
