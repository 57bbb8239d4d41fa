"""Output projection and (label-smoothed) cross-entropy in one operation, on the fastest backend that takes it."""

from __future__ import annotations

from torch import Tensor

from .. import dispatch

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
    """
    backend = dispatch.choose("output_cross_entropy", features).module
    return backend.output_cross_entropy(features, weight, bias, target, padding, label_smoothing)
