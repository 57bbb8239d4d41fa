"""The gate of double path networks (DPN-S2S, Eq. 9 and 10), which fuses what two paths give."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

PATHS = ("cnn", "san")


class ScalarGate(nn.Module):
    """g = sigmoid([own; other] W + b), fused = own (1 - g) + other g (Eq. 9 and 10); starts at g = 0.5.

    Args:
        size: d.
        gradient_scale: of the gradient of what is in the sigmoid, the gate's parameters with it; 0 keeps g at 0.5.
    """

    def __init__(self, size: int, gradient_scale: float = 1.0) -> None:
        super().__init__()
        self.gradient_scale = gradient_scale
        self.linear = nn.Linear(2 * size, 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        """Fuses own and other (B, T, d). Returns (B, T, d) and g (B, T, 1)."""
        logit = self.linear(torch.cat([own, other], dim=-1))
        if self.gradient_scale != 1 and logit.requires_grad:
            logit = torch.lerp(logit.detach(), logit, self.gradient_scale)
        gate = torch.sigmoid(logit)
        # Under autocast they may be of different precisions, which lerp does not take.
        dtype = torch.promote_types(own.dtype, other.dtype)
        return torch.lerp(own.to(dtype), other.to(dtype), gate.to(dtype)), gate


def fuse(gate: ScalarGate | None, contexts: Mapping[str, Tensor], own: str) -> tuple[Tensor, Tensor | None]:
    """Eq. 9 in a decoder path called ``own``: contexts (B, T, d) by encoder path -> (B, T, d) and g (B, T, 1).

    With one encoder path there is no gate: its context, and None.
    """
    if gate is None:
        (context,) = contexts.values()
        return context, None
    (other,) = set(PATHS) - {own}
    fused: tuple[Tensor, Tensor] = gate(contexts[own], contexts[other])
    return fused
