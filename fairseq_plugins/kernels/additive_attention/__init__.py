"""Additive attention after its projections, on the fastest backend that takes it."""

from __future__ import annotations

from torch import Tensor

from .. import dispatch
from ..checks import check_mask, check_tensor

__all__ = ["additive_attention"]


def additive_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    score: Tensor,
    padding_mask: Tensor | None,
    are_values_masked: bool = False,
) -> tuple[Tensor, Tensor]:
    """e(t, s) = v^T tanh(q(t) + k(s)), weights softmax over s, context the mean of the values under them (Bahdanau, Cho
    and Bengio, 2015, Section A.1.2). Differentiable once. The softmax is computed in float32 at least.

    Args:
        query: q, W_a times the decoder's states (B, T, A).
        keys: k, U_a times the encoder's outputs, with the bias (B, S, A).
        values: (B, S, K).
        score: v, (A,).
        padding_mask: (B, S), True at padding, which has the weight 0, in a row of nothing else too; None if there is
            none.
        are_values_masked: the values at padding are zero already.

    Returns:
        context (B, T, K) and weights (B, T, S).

    Raises:
        ValueError: their sizes, precisions or devices do not fit each other.
    """
    check_tensor("query", query, ("B", "T", "A"), query)
    rows, _, features = query.shape
    check_tensor("keys", keys, (rows, "S", features), query)
    check_tensor("values", values, (rows, keys.size(1), "K"), query)
    check_tensor("score", score, (features,), query)
    if padding_mask is not None:
        check_mask("padding_mask", padding_mask, keys)
        if not are_values_masked:
            # Under a weight of 0 NaN would stay NaN.
            values = values.masked_fill(padding_mask.unsqueeze(-1), 0)
    backend = dispatch.choose("additive_attention", query, keys, score).module
    result: tuple[Tensor, Tensor] = backend.additive_attention(query, keys, values, score, padding_mask)
    return result
