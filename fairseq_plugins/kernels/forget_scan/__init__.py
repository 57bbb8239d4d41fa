"""RCRN's Eq. 15, a scan without a matrix product in its loop, on the fastest backend that takes it."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import dispatch

__all__ = ["forget_scan"]


def forget_scan(gate: Tensor, candidate: Tensor, initial: Tensor | None = None) -> Tensor:
    """c(t) = gate(t) * c(t - 1) + (1 - gate(t)) * candidate(t) (RCRN, Eq. 15), elementwise. Differentiable once.

    Args:
        gate: (T, B, F), in [0, 1]: what stays.
        candidate: (T, B, F).
        initial: c(0) (B, F); zero if None.

    Returns:
        c (T, B, F), computed and returned in float32 at least, whatever the precision of what it reads.

    Raises:
        ValueError: gate and candidate are not of one shape, or initial is not of theirs without the first dimension;
            or they are on several devices, or no floating-point numbers.
    """
    if gate.dim() != 3:
        raise ValueError(f"gate must be of shape (T, B, F), not {tuple(gate.shape)}")
    if gate.shape != candidate.shape or (initial is not None and initial.shape != gate.shape[1:]):
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (gate, candidate, initial) if tensor is not None)
        raise ValueError(f"gate and candidate (T, B, F) and initial (B, F) do not fit each other: {shapes}")
    tensors = [tensor for tensor in (gate, candidate, initial) if tensor is not None]
    if len({tensor.device for tensor in tensors}) > 1:
        raise ValueError("gate, candidate and initial must be on one device")
    if not all(tensor.is_floating_point() for tensor in tensors):
        raise ValueError("gate, candidate and initial must be floating-point numbers")
    dtype = torch.float32
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    gate, candidate = gate.to(dtype), candidate.to(dtype)
    initial = gate.new_zeros(gate.shape[1:]) if initial is None else initial.to(dtype)
    c: Tensor = dispatch.choose("forget_scan", gate).module.forget_scan(gate, candidate, initial)
    return c
