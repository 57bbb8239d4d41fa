"""Attention by dot products, on the fastest backend that takes it."""

from __future__ import annotations

from torch import Tensor

from .. import dispatch

__all__ = ["dot_product_attention"]


def dot_product_attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """softmax(scale q k^T + mask) v, as ``torch.nn.functional.scaled_dot_product_attention``.

    Args:
        query: (N, A, T, d), A heads.
        keys, values: (N, A, S, d).
        mask: broadcasts to (N, A, T, S): True where a query may look at a key, or what is added to their product; None
            if there is none. Every query needs one key.
        scale: of the products.

    Returns:
        (N, A, T, d).
    """
    backend = dispatch.choose("dot_product_attention", query, keys, values, mask).module
    result: Tensor = backend.dot_product_attention(query, keys, values, mask, scale)
    return result
