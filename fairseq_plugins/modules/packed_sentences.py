"""Batches without their padding: the tokens of all sentences, one after the other. A training on a CPU computes nothing
for padding so, and its attentions and convolutions have kernels of their own (``kernels/packed_sentences``).

Symbols: B sentences, T positions, N real tokens, d features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..kernels import dispatch
from ..kernels.second_derivatives import differentiable_once


class PackedSentences(NamedTuple):
    """Where the tokens of a padded batch are when it is packed.

    Attributes:
        rows: (N,), of each token its place among the B T positions; None if there is no padding.
        offsets: (B + 1,), where each sentence begins among the tokens, and N.
        lengths: (B,).
        steps: T.
    """

    rows: Tensor | None
    offsets: Tensor
    lengths: Tensor
    steps: int

    @classmethod
    def of(cls, real: Tensor) -> PackedSentences:
        """real (B, T), False at padding."""
        lengths = real.sum(dim=1)
        rows = real.flatten().nonzero().squeeze(1)
        is_whole = len(rows) == real.numel()
        return cls(None if is_whole else rows, F.pad(lengths.cumsum(dim=0), (1, 0)), lengths, real.size(1))

    def pack(self, x: Tensor) -> Tensor:
        """(B, T, d) -> (N, d)."""
        x = x.flatten(0, 1)
        return x if self.rows is None else _Packed.apply(x, self.rows)

    def unpack(self, x: Tensor) -> Tensor:
        """(N, d) -> (B, T, d), zero at padding."""
        size = len(self.lengths) * self.steps
        padded = x if self.rows is None else _Unpacked.apply(x, self.rows, size)
        return padded.view(-1, self.steps, x.size(1))


class PackedFlow(NamedTuple):
    """Who attends to whom.

    Attributes:
        query_offsets, key_offsets: :attr:`PackedSentences.offsets` of both.
        is_causal: a token sees itself and those before it.
    """

    query_offsets: Tensor
    key_offsets: Tensor
    is_causal: bool = False


def is_packable(x: Tensor, *masks: Tensor) -> bool:
    """Whether a batch like x is faster when it is packed: where there are kernels for it, and each sentence is of one
    piece in every mask (B, T)."""
    if dispatch.choose("packed_sentences", x).name == "reference":
        return False
    return all(mask.numel() > 0 and _is_of_one_piece(mask) for mask in masks)


def _is_of_one_piece(mask: Tensor) -> bool:
    begins = (mask[:, 1:] & ~mask[:, :-1]).sum(dim=1) + mask[:, 0]
    return bool((begins <= 1).all())


class _Packed(torch.autograd.Function):
    """``index_select``, whose own gradient adds row by row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.size = x.size(0)
        return x.index_select(0, rows)

    @staticmethod
    @differentiable_once("reference")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (rows,) = ctx.saved_tensors
        return _spread(gradient, rows, ctx.size), None


class _Unpacked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(rows)
        return _spread(x, rows, size)

    @staticmethod
    @differentiable_once("reference")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (rows,) = ctx.saved_tensors
        return gradient.index_select(0, rows), None, None


def _spread(x: Tensor, rows: Tensor, size: int) -> Tensor:
    return x.new_zeros(size, x.size(1)).index_copy_(0, rows, x)
