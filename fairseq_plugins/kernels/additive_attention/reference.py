"""Additive attention as it is written in the paper: position by position."""

from __future__ import annotations

import torch
from torch import Tensor


def refuses(query: Tensor, keys: Tensor, score: Tensor) -> str | None:
    """It takes everything."""
    return None


def additive_attention(
    query: Tensor, keys: Tensor, values: Tensor, score: Tensor, padding_mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """See :func:`fairseq_plugins.kernels.additive_attention.additive_attention`."""
    contexts, weights = [], []
    for b in range(query.size(0)):
        real = [s for s in range(keys.size(1)) if padding_mask is None or not padding_mask[b, s]]
        for t in range(query.size(1)):
            context, row = values.new_zeros(values.size(2)), query.new_zeros(keys.size(1))
            if real:
                energies = torch.stack([score @ torch.tanh(query[b, t] + keys[b, s]) for s in real])
                alpha = torch.exp(energies) / torch.exp(energies).sum()
                context = sum((alpha[i] * values[b, s] for i, s in enumerate(real)), context)
                row = row.index_put((torch.tensor(real, device=row.device),), alpha)
            contexts.append(context)
            weights.append(row)
    shape = query.shape[:2]
    return torch.stack(contexts).unflatten(0, shape), torch.stack(weights).unflatten(0, shape)
