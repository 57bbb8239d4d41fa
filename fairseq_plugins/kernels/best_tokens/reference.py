"""The best tokens in PyTorch's operations: on any device, in any precision."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def refuses(logits: Tensor) -> str | None:
    """It takes everything."""
    return None


def best_tokens(logits: Tensor, first: int, count: int) -> tuple[Tensor, Tensor]:
    """See :func:`fairseq_plugins.kernels.best_tokens.best_tokens`."""
    log_probabilities = F.log_softmax(logits, dim=-1, dtype=torch.float32)
    best, tokens = log_probabilities[:, first:].topk(count)
    always = torch.arange(first, device=logits.device).expand(logits.size(0), -1)
    return torch.cat([log_probabilities[:, :first], best], dim=1), torch.cat([always, tokens + first], dim=1)
