"""The scan in torch's operations: two small ones for each time step, the rest for all of them at once."""

from __future__ import annotations

import sys

import torch
from torch import Tensor

from .autograd import ForgetScan


def refuses(gate: Tensor) -> str | None:
    """It takes everything."""
    return None


def forget_scan(gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
    """See :func:`fairseq_plugins.kernels.forget_scan.forget_scan`."""
    if gate.numel() == 0:
        return gate * candidate
    c: Tensor = ForgetScan.apply(sys.modules[__name__], gate, candidate, initial)
    return c


def forward(gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
    """See :class:`.autograd.Loops`."""
    c = (1 - gate) * candidate
    for g, new in zip(gate.unbind(0), c.unbind(0), strict=True):
        new.addcmul_(g, initial)
        initial = new
    return c


def backward(
    gradient: Tensor, gate: Tensor, candidate: Tensor, initial: Tensor, c: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """See :class:`.autograd.Loops`."""
    of_c = gradient.clone()
    for t in range(len(gate) - 1, 0, -1):
        of_c[t - 1].addcmul_(gate[t], of_c[t])
    before = torch.cat([initial.unsqueeze(0), c[:-1]])
    return of_c * (before - candidate), of_c * (1 - gate), gate[0] * of_c[0]
