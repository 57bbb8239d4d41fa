"""Packed sentences one after the other, as the DPN-S2S paper writes one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor


def refuses(x: Tensor) -> str | None:
    """It takes everything."""
    return None


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
    keys, values = memory.chunk(2, dim=1) if memory.size(1) > query.size(1) else (memory, memory)
    contexts = []
    for targets, sources in zip(_sentences(query_offsets), _sentences(key_offsets), strict=True):
        # (heads, positions, d / heads)
        q, k, v = (
            x[rows].unflatten(1, (heads, -1)).transpose(0, 1)
            for x, rows in ((query, targets), (keys, sources), (values, sources))
        )
        energies = q @ k.mT * scale
        if is_causal:
            energies = energies.masked_fill(torch.ones_like(energies, dtype=torch.bool).triu(1), float("-inf"))
        contexts.append((energies.softmax(dim=-1) @ v).transpose(0, 1).flatten(1))
    return torch.cat([query[:0], *contexts])


def windows(x: Tensor, offsets: Tensor, width: int, before: int) -> Tensor:
    """As :func:`fairseq_plugins.kernels.packed_sentences.windows`."""
    rows_of_windows = [x.new_zeros(0, width * x.size(1))]
    for rows in _sentences(offsets):
        padded = F.pad(x[rows], (0, 0, before, width - 1 - before))
        rows_of_windows += [padded[i : i + width].flatten().unsqueeze(0) for i in range(rows.stop - rows.start)]
    return torch.cat(rows_of_windows)


def _sentences(offsets: Tensor) -> Iterator[slice]:
    return itertools.starmap(slice, itertools.pairwise(offsets.tolist()))
