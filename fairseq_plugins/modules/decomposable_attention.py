"""Attention across two sentences: Parikh, Täckström, Das and Uszkoreit (2016), "A Decomposable Attention Model"."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..kernels.checks import check_tensor, checked_lengths
from ..kernels.padding import padding_mask
from .dropout import Dropout


class DecomposableAttention(nn.Module):
    """Two sequences, each token compared with what the other one holds for it (Section 3, Eq. 1 to 3).

        e_ij = F(a_i)^T F(b_j)
        beta_i = Σ_j softmax_j(e_ij) b_j,   alpha_j = Σ_i softmax_i(e_ij) a_i
        v_1,i = G([a_i; beta_i]),   v_2,j = G([b_j; alpha_j])

    F and G are networks of two layers with ReLU.

    Args:
        input_size: of both sequences.
        size: of F, G and what comes out.
        dropout: before each layer of F and G.
    """

    def __init__(self, input_size: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.input_size = input_size
        self.attend = _two_layers(input_size, size, dropout)
        self.compare = _two_layers(2 * input_size, size, dropout)

    def forward(self, a: Tensor, a_lengths: Tensor, b: Tensor, b_lengths: Tensor) -> tuple[Tensor, Tensor]:
        """a (T, B, D) and b (S, B, D), right-padded, lengths (B,) -> v_1 (T, B, size) and v_2 (S, B, size).

        Raises:
            ValueError: their sizes, rows, precisions or devices do not fit the layer or each other; or lengths are
                below 1, or above T and S. The latter is seen on CPUs only.
        """
        a, a_padding = self._without_padding("a", a, a_lengths)
        b, b_padding = self._without_padding("b", b, b_lengths)
        if a.size(1) != b.size(1):
            raise ValueError(f"a has {a.size(1)} rows, b {b.size(1)}")
        scores = torch.einsum("tbd,sbd->bts", self.attend(a), self.attend(b))
        to_b = torch.softmax(scores.masked_fill(b_padding.t().unsqueeze(1), float("-inf")), dim=2)
        to_a = torch.softmax(scores.masked_fill(a_padding.t().unsqueeze(2), float("-inf")), dim=1)
        beta, alpha = torch.einsum("bts,sbd->tbd", to_b, b), torch.einsum("bts,tbd->sbd", to_a, a)
        return self.compare(torch.cat([a, beta], dim=-1)), self.compare(torch.cat([b, alpha], dim=-1))

    def _without_padding(self, name: str, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """x, zero at padding, and where that is (T, B)."""
        check_tensor(name, x, ("T", "B", self.input_size), next(self.attend.parameters()))
        padding = padding_mask(checked_lengths(lengths, x, least=1), x.size(0))
        return x.masked_fill(padding.unsqueeze(-1), 0), padding


def _two_layers(input_size: int, size: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        Dropout(dropout), nn.Linear(input_size, size), nn.ReLU(), Dropout(dropout), nn.Linear(size, size), nn.ReLU()
    )
