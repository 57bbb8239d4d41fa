"""Attentive pooling: dos Santos, Tan, Xiang and Zhou (2016), "Attentive Pooling Networks"."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .padding import padding_mask


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
        """q (T, B, D) and a (S, B, D), right-padded -> r_q and r_a (B, D)."""
        q_weights, a_weights = self.weights(q, q_lengths, a, a_lengths)
        return torch.einsum("tbd,bt->bd", q, q_weights), torch.einsum("sbd,bs->bd", a, a_weights)

    def weights(self, q: Tensor, q_lengths: Tensor, a: Tensor, a_lengths: Tensor) -> tuple[Tensor, Tensor]:
        """w_q (B, T) and w_a (B, S), 0 at padding."""
        q_padding, a_padding = padding_mask(q_lengths, q.size(0)), padding_mask(a_lengths, a.size(0))
        g = torch.tanh(torch.einsum("tbd,de,sbe->bts", q, self.weight, a))
        g = g.masked_fill(q_padding.t().unsqueeze(2) | a_padding.t().unsqueeze(1), -2.0)  # below every tanh
        q_weights = torch.softmax(g.amax(dim=2).masked_fill(q_padding.t(), float("-inf")), dim=1)
        return q_weights, torch.softmax(g.amax(dim=1).masked_fill(a_padding.t(), float("-inf")), dim=1)
