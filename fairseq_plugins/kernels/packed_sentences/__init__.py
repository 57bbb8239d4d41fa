"""What mixes the positions of packed sentences, whose tokens follow each other without padding: dot-product attention,
and the windows of a convolution.

Symbols: B sentences, N and M tokens of all of them, d features, r positions of a window.
"""

from __future__ import annotations

from torch import Tensor

from .. import dispatch
from ..checks import check_tensor

__all__ = ["packed_attention", "windows"]


def packed_attention(
    query: Tensor,
    memory: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    heads: int,
    scale: float,
    is_causal: bool = False,
) -> Tensor:
    """softmax(scale q k^T) v of each head and sentence (DPN-S2S, Eq. 4 and 6). Differentiable once.

    Args:
        query: (N, d), a d / heads for each head.
        memory: keys and values (M, 2 d), the values behind the keys; or (M, d), which are both.
        query_offsets: (B + 1,), rising: where each sentence's queries begin, and N.
        key_offsets: (B + 1,), the same of the memory. A sentence without keys gets zeros.
        heads: of the attention.
        scale: of the energies.
        is_causal: query t of a sentence sees keys 0 ... t.

    Returns:
        (N, d).

    Raises:
        ValueError: their sizes, precisions or devices do not fit each other.
    """
    check_tensor("query", query, ("N", "d"), query)
    width = query.size(1) * (1 if memory.size(-1) == query.size(1) else 2)
    check_tensor("memory", memory, ("M", width), query)
    module = dispatch.choose("packed_sentences", query).module
    context: Tensor = module.attention(query, memory, query_offsets, key_offsets, heads, scale, is_causal)
    return context


def windows(x: Tensor, offsets: Tensor, width: int, before: int) -> Tensor:
    """What a convolution reads at each position (DPN-S2S, Eq. 5): x (N, d) -> (N, r d). Differentiable once.

    Args:
        x: tokens.
        offsets: (B + 1,), rising: where each sentence begins, and N.
        width: r.
        before: how many of the r positions are before the position itself. Outside of the sentence there are zeros.

    Raises:
        ValueError: their sizes, precisions or devices do not fit each other.
    """
    check_tensor("x", x, ("N", "d"), x)
    window: Tensor = dispatch.choose("packed_sentences", x).module.windows(x, offsets, width, before)
    return window
