"""Output projection and (label-smoothed) cross-entropy in one operation, on the fastest backend that takes it."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import dispatch
from ..checks import check_tensor

__all__ = ["output_cross_entropy"]


def output_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    padding: int,
    label_smoothing: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """The summed cross-entropy of an output layer, softmax(features weight^T + bias), against ``target``.

    Differentiable once, in features, weight and bias. The softmax is computed in float32 at least.

    Args:
        features: (N, E).
        weight: (V, E).
        bias: (V,) or None.
        target: (N,), the right type of each token.
        padding: the type that does not count where it is the target.
        label_smoothing: e; the right type's share of the target distribution is 1 - e, that of each other e / (V - 1),
            as in fairseq.

    Returns:
        the loss (), in nats, and the part of it without smoothing (), which has no gradient; both float32 at least.

    Raises:
        ValueError: their sizes, precisions or devices do not fit each other, or a target is not among the V types; the
            latter is seen on CPUs only.
    """
    check_tensor("features", features, ("N", "E"), features)
    check_tensor("weight", weight, ("V", features.size(1)), features)
    if bias is not None:
        check_tensor("bias", bias, (weight.size(0),), weight)
    if target.shape != features.shape[:1] or target.dtype != torch.int64 or target.device != features.device:
        raise ValueError(
            f"target must be int64 of shape ({features.size(0)},) on {features.device}, not "
            f"{str(target.dtype).removeprefix('torch.')} of shape {tuple(target.shape)} on {target.device}"
        )
    real = target.masked_fill(target == padding, 0)
    if real.is_cpu and real.numel():
        least, most = (int(bound) for bound in real.aminmax())
        if least < 0 or most >= weight.size(0):
            raise ValueError(f"targets must be from 0 to {weight.size(0) - 1}, not from {least} to {most}")
    backend = dispatch.choose("output_cross_entropy", features).module
    losses: tuple[Tensor, Tensor] = backend.output_cross_entropy(
        features, weight, bias, target, padding, label_smoothing
    )
    return losses
