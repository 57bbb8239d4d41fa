"""Additive attention: Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and
translate"."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """e(t, s) = v^T tanh(W_a q(t) + U_a h(s) + b), softmax over the source positions s (their Section A.1.2).

    Args:
        query_size: Q.
        key_size: K.
        attention_size: A, rows of W_a and U_a.
    """

    def __init__(self, query_size: int, key_size: int, attention_size: int) -> None:
        super().__init__()
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(key_size, attention_size)
        self.score = nn.Linear(attention_size, 1, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        """U_a h(s) + b, once for each sentence: keys (B, S, K) -> (B, S, A)."""
        return self.key_projection(keys)

    def forward(
        self, query: Tensor, projected_keys: Tensor, values: Tensor, padding_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Attends for T queries of each sentence at once.

        Args:
            query: (B, T, Q).
            projected_keys: (B, S, A) from :meth:`project_keys`.
            values: (B, S, K).
            padding_mask: (B, S), True at padding; None if there is none.

        Returns:
            context (B, T, K) and weights (B, T, S).
        """
        sums = self.query_projection(query).unsqueeze(2) + projected_keys.unsqueeze(1)
        scores = self.score(torch.tanh(sums)).squeeze(-1)
        if padding_mask is not None:
            scores = scores.masked_fill(padding_mask.unsqueeze(1), float("-inf"))
        weights = F.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32)).type_as(scores)
        return torch.bmm(weights, values), weights
