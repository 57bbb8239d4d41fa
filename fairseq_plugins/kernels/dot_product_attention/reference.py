"""PyTorch's own attention."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def refuses(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> str | None:
    """It takes everything."""
    return None


def dot_product_attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """See :func:`fairseq_plugins.kernels.dot_product_attention.dot_product_attention`."""
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=scale)
