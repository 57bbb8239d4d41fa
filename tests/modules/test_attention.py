"""Additive attention against its equation."""

from __future__ import annotations

import torch

from fairseq_plugins.modules import AdditiveAttention


def test_additive_attention_of_the_equation() -> None:
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 4, 5).double()
    query, keys = torch.randn(2, 6, 3).double(), torch.randn(2, 7, 4).double()
    padding = torch.arange(7) >= torch.tensor([[7], [4]])
    context, weights = attention(query, attention.project_keys(keys), keys, padding)

    v, w, u, b = (
        attention.score.weight[0],
        attention.query_projection.weight,
        attention.key_projection.weight,
        attention.key_projection.bias,
    )
    for i, length in enumerate((7, 4)):
        assert not weights[i, :, length:].any()
        for t in range(6):
            e = torch.stack([v @ torch.tanh(w @ query[i, t] + u @ keys[i, s] + b) for s in range(length)])
            expected = torch.softmax(e, dim=0)
            torch.testing.assert_close(weights[i, t, :length], expected, rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(context[i, t], expected @ keys[i, :length], rtol=1e-10, atol=1e-10)


def test_without_padding_no_mask_is_needed() -> None:
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 4, 5)
    query, keys = torch.randn(2, 1, 3), torch.randn(2, 7, 4)
    projected = attention.project_keys(keys)
    without, _ = attention(query, projected, keys, None)
    masked, _ = attention(query, projected, keys, torch.zeros(2, 7, dtype=torch.bool))
    torch.testing.assert_close(without, masked)
