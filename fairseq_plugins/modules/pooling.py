"""A sequence's outputs as one vector: maximum, mean and minimum over its real tokens, or its last output.

RCRN (Tay, Luu and Hui 2018), Section 4.2: the concatenation of the max, mean and min pooling of all hidden states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..kernels.checks import check_tensor, checked_lengths
from ..kernels.padding import padding_mask


class Pooled(NamedTuple):
    """What :func:`pool` returns."""

    output: Tensor  # (B, poolings * H), in the order asked for
    positions: dict[str, Tensor]  # of the poolings that pick: (B, H), which token each feature is of


def _largest(x: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
    return x.masked_fill(padding.unsqueeze(-1), float("-inf")).max(dim=0)


def _smallest(x: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
    return x.masked_fill(padding.unsqueeze(-1), float("inf")).min(dim=0)


def _mean(x: Tensor, padding: Tensor) -> tuple[Tensor, None]:
    return x.masked_fill(padding.unsqueeze(-1), 0).sum(dim=0) / (~padding).sum(dim=0).unsqueeze(-1), None


def _last(x: Tensor, padding: Tensor) -> tuple[Tensor, None]:
    rows = torch.arange(x.size(1), device=x.device)
    return x[(~padding).sum(dim=0) - 1, rows], None


POOLINGS: dict[str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]] = {
    "max": _largest,
    "mean": _mean,
    "min": _smallest,
    "last": _last,
}
"""Name → x (T, B, H) and padding (T, B) → (B, H), and which tokens these are of, where it picks."""


def pool(x: Tensor, lengths: Tensor, poolings: Sequence[str]) -> Pooled:
    """Pools the real tokens of x (T, B, H).

    Args:
        x: a network's outputs.
        lengths: (B,) real tokens of each row, at least 1.
        poolings: names of :data:`POOLINGS`.

    Raises:
        ValueError: lengths are not one for each row, or not in 1 ... T; the latter is seen on CPUs only.
    """
    check_tensor("x", x, ("T", "B", "H"), x)
    lengths = checked_lengths(lengths, x, least=1)
    padding = padding_mask(lengths, x.size(0))
    pooled = {name: POOLINGS[name](x, padding) for name in poolings}
    positions = {name: picked for name, (_, picked) in pooled.items() if picked is not None}
    return Pooled(torch.cat([output for output, _ in pooled.values()], dim=-1), positions)
