"""Attentive pooling: dos Santos, Tan, Xiang and Zhou (2016), "Attentive Pooling Networks"."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..kernels.checks import check_tensor, checked_lengths
from ..kernels.padding import padding_mask


class AttentivePooling(nn.Module):
    """Two sequences, each as a mean that is weighted by what the other one holds.

        G = tanh(Q^T U A),   w_q = softmax(row maxima of G),   w_a = softmax(column maxima of G)
        r_q = Q w_q,   r_a = A w_a

    Args:
        size: of both sequences' outputs.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, q: Tensor, q_lengths: Tensor, a: Tensor, a_lengths: Tensor) -> tuple[Tensor, Tensor]:
        """q (T, B, D) and a (S, B, D), right-padded -> r_q and r_a (B, D).

        Raises:
            ValueError: their sizes, precisions or devices do not fit the layer or each other; or lengths are below 1,
                or above T and S. The latter is seen on CPUs only.
        """
        q, q_padding = self._without_padding("q", q, q_lengths)
        a, a_padding = self._without_padding("a", a, a_lengths)
        q_weights, a_weights = self._weights(q, q_padding, a, a_padding)
        return torch.einsum("tbd,bt->bd", q, q_weights), torch.einsum("sbd,bs->bd", a, a_weights)

    def weights(self, q: Tensor, q_lengths: Tensor, a: Tensor, a_lengths: Tensor) -> tuple[Tensor, Tensor]:
        """w_q (B, T) and w_a (B, S), 0 at padding. Raises what :meth:`forward` does."""
        return self._weights(*self._without_padding("q", q, q_lengths), *self._without_padding("a", a, a_lengths))

    def _without_padding(self, name: str, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """x, zero at padding, and where that is (T, B)."""
        check_tensor(name, x, ("T", "B", self.weight.size(0)), self.weight)
        padding = padding_mask(checked_lengths(lengths, x, least=1), x.size(0))
        return x.masked_fill(padding.unsqueeze(-1), 0), padding

    def _weights(self, q: Tensor, q_padding: Tensor, a: Tensor, a_padding: Tensor) -> tuple[Tensor, Tensor]:
        if q.size(1) != a.size(1):
            raise ValueError(f"q has {q.size(1)} rows, a {a.size(1)}")
        g = torch.tanh(torch.einsum("tbd,de,sbe->bts", q, self.weight, a))
        g = g.masked_fill(q_padding.t().unsqueeze(2) | a_padding.t().unsqueeze(1), -2.0)  # below every tanh
        q_weights = torch.softmax(g.amax(dim=2).masked_fill(q_padding.t(), float("-inf")), dim=1)
        return q_weights, torch.softmax(g.amax(dim=1).masked_fill(a_padding.t(), float("-inf")), dim=1)
