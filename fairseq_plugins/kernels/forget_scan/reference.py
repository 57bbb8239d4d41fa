"""Eq. 15 of RCRN as it is printed: loops over time steps, rows and features."""

from __future__ import annotations

import torch
from torch import Tensor


def refuses(gate: Tensor) -> str | None:
    """It takes everything."""
    return None


def forget_scan(gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
    """See :func:`fairseq_plugins.kernels.forget_scan.forget_scan`."""
    steps, batch_size, features = gate.shape
    rows = []
    for b in range(batch_size):
        for k in range(features):
            c = initial[b, k]
            for t in range(steps):
                c = gate[t, b, k] * c + (1 - gate[t, b, k]) * candidate[t, b, k]
                rows.append(c)
    if not rows:
        return gate * candidate
    return torch.stack(rows).view(batch_size, features, steps).permute(2, 0, 1)
