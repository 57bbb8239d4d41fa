"""Output projection, softmax, cross-entropy and all their gradients in torch's operations, a chunk of tokens at a time.

Logits, probabilities and the logits' gradient of N tokens are tables of N x V numbers: at 4,000 tokens and 30,000 types
half a gigabyte each. Here they exist for one chunk only, which stays in the cache of a CPU; what is kept for the
backward pass are the gradients of features, weight and bias, computed on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..autocast import is_autocast
from ..linear import onednn
from ..second_derivatives import differentiable_once

# Numbers in a chunk's table: larger ones leave the cache, smaller ones make the matrix products thin.
_CHUNK_NUMBERS = 1 << 21
# No cache of a GPU holds a chunk that keeps it busy, so that only memory limits one: here to 256 MiB in float32. The
# number is an estimate and has not been measured.
_CHUNK_NUMBERS_ELSEWHERE = 1 << 26
_LEAST_CHUNK = 64
# float16 has no number between 0 and 6e-8, and few below 6e-5, where most probabilities of a large vocabulary are. They
# enter its products that much larger, and what they are multiplied with for the weight's gradient that much smaller,
# so that a sum over a chunk's tokens overflows no sooner.
_FLOAT16_SCALE = 256.0


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
    if features.is_cpu:
        # Elsewhere their number would have to be fetched first.
        real = target.ne(padding).nonzero().squeeze(1)
        if len(real) < len(target):
            features, target = features.index_select(0, real), target.index_select(0, real)
    else:
        features = features.masked_fill(target.eq(padding).unsqueeze(1), 0)
    if not torch.is_grad_enabled():
        # A Function takes every parameter for one whose gradient is wanted.
        features, weight = features.detach(), weight.detach()
        bias = None if bias is None else bias.detach()
    losses: tuple[Tensor, Tensor] = _OutputCrossEntropy.apply(features, weight, bias, target, padding, label_smoothing)
    return losses


def _chunk_size(features: Tensor, types: int) -> int:
    """How many rows of features (N, E), and of a table (N, V) of V types, are computed at once."""
    numbers = _CHUNK_NUMBERS if features.is_cpu else _CHUNK_NUMBERS_ELSEWHERE
    return max(_LEAST_CHUNK, numbers // types)


def _product_of(features: Tensor, weight: Tensor, rows: int) -> Callable[..., Tensor]:
    """x, weight and bias -> x weight^T + bias, for products as large as the logits of some rows."""
    is_fast = onednn.refuses(features[:rows], weight) is None
    return onednn.product if is_fast else F.linear


class _OutputCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        padding: int,
        label_smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        types = weight.size(0)
        wrong = label_smoothing / max(1, types - 1)
        right = 1 - label_smoothing - wrong
        precision = torch.promote_types(features.dtype, torch.float32)
        needs_features, needs_weight, needs_bias, *_ = ctx.needs_input_grad
        needs_any = needs_features or needs_weight or needs_bias

        real = target.ne(padding)
        counted = real.to(precision)
        # Padding asks for any type, and counts for nothing.
        picked = target.masked_fill(~real, 0).unsqueeze(1)
        size = _chunk_size(features, types)
        chunk_of = [(start, min(start + size, features.size(0))) for start in range(0, features.size(0), size)]
        rows_of_chunk = min(size, features.size(0))
        probabilities_of_chunk = features.new_empty(rows_of_chunk, types, dtype=precision)
        product = _product_of(features, weight, rows_of_chunk)
        device = features.device.type
        multiplied = torch.get_autocast_dtype(device) if is_autocast(device) else features.dtype
        scale = _FLOAT16_SCALE if multiplied == torch.float16 else 1.0

        features_gradient = torch.empty_like(features) if needs_features else None
        # Transposed: the narrow factor of each product comes first, which some of them copy.
        weight_gradient = weight.new_zeros(weight.size(1), types, dtype=precision) if needs_weight else None
        bias_gradient = weight.new_zeros(types, dtype=precision) if needs_bias else None
        loss, nll_loss = features.new_zeros(2, dtype=precision).unbind()
        for start, stop in chunk_of:
            rows = slice(start, stop)
            probabilities = probabilities_of_chunk[: stop - start]
            logits = product(features[rows], weight, bias)
            torch.log_softmax(logits, dim=-1, dtype=precision, out=probabilities)
            nll = -probabilities.gather(1, picked[rows]).squeeze(1) * counted[rows]
            nll_loss = nll_loss + nll.sum()
            loss = loss + right * nll.sum()
            if wrong:
                loss = loss - wrong * (probabilities.sum(dim=1) * counted[rows]).sum()
            if not needs_any:
                continue
            # d loss / d logits = probability - right * [it is the target] - wrong; the last term is of rank one.
            probabilities.exp_().scatter_add_(1, picked[rows], probabilities.new_full((stop - start, 1), -right))
            if bias_gradient is not None:
                bias_gradient += torch.mv(probabilities.T, counted[rows])
            # In place, so that the bias has to come before.
            upstream = (probabilities if scale == 1 else probabilities.mul_(scale)).to(features.dtype)
            masked = (counted[rows] / scale).to(features.dtype).unsqueeze(1)
            if features_gradient is not None:
                features_gradient[rows] = product(upstream, weight.T) * masked
            if weight_gradient is not None:
                seen = features[rows] * masked
                weight_gradient += product(seen.T, upstream.T)
        if wrong:
            if features_gradient is not None:
                features_gradient -= wrong * counted.to(features.dtype).unsqueeze(1) * weight.sum(dim=0)
            if weight_gradient is not None:
                weight_gradient -= wrong * torch.mv(features.T.to(precision), counted).unsqueeze(1)
            if bias_gradient is not None:
                bias_gradient -= wrong * counted.sum()
        ctx.save_for_backward(features_gradient, weight_gradient, bias_gradient)
        ctx.dtypes = weight.dtype, None if bias is None else bias.dtype
        ctx.mark_non_differentiable(nll_loss)
        return loss, nll_loss

    @staticmethod
    @differentiable_once("reference")
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, bias = ctx.saved_tensors
        weight_dtype, bias_dtype = ctx.dtypes
        return (
            None if features is None else (features * scale).to(features.dtype),
            None if weight is None else (weight.T * scale).to(weight_dtype),
            None if bias is None else (bias * scale).to(bias_dtype),
            None,
            None,
            None,
        )
