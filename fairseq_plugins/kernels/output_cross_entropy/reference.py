"""The loss of an output layer as it is written in papers: slow, and with whole tables of tokens by vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor


def refuses(features: Tensor) -> str | None:
    """It takes everything."""
    return None


def output_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    padding: int,
    label_smoothing: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """See :func:`fairseq_plugins.kernels.output_cross_entropy.output_cross_entropy`."""
    logits = features @ weight.T
    if bias is not None:
        logits = logits + bias
    log_probabilities = torch.log_softmax(logits, dim=-1)
    loss, nll_loss = features.new_zeros(()), features.new_zeros(())
    wrong = label_smoothing / (weight.size(0) - 1)
    for row, token in zip(log_probabilities, target.tolist(), strict=True):
        if token == padding:
            continue
        nll = -row[token]
        others = -(row.sum() - row[token])
        loss = loss + (1 - label_smoothing) * nll + wrong * others
        nll_loss = nll_loss + nll.detach()
    return loss, nll_loss
