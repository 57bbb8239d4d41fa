"""The scan on GPUs in Triton: a program has some of the columns (rows of the batch by features) for all steps.

Under Triton's interpreter (TRITON_INTERPRET=1 in the environment when triton is first imported) it runs on CPUs.
"""

# Not `from __future__ import annotations`: the interpreter of Triton 3.1 does not know a constexpr by its name.

import os
import sys

import torch
import triton
import triton.language as tl
from torch import Tensor

from .autograd import ForgetScan

_BLOCK = 128


@triton.jit
def _forward(gate, candidate, initial, c, steps, columns, BLOCK: tl.constexpr):
    k = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # there may be more than 2^31 numbers
    inside = k < columns
    before = tl.load(initial + k, inside, 0)
    at = k
    for _ in range(steps):
        g = tl.load(gate + at, inside, 0)
        before = g * before + (1 - g) * tl.load(candidate + at, inside, 0)
        tl.store(c + at, before, inside)
        at += columns


@triton.jit
def _backward(
    gradient,
    gate,
    candidate,
    initial,
    c,
    of_gate,
    of_candidate,
    of_initial,
    steps,
    columns,
    last,  # (steps - 1) * columns
    BLOCK: tl.constexpr,
):
    k = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = k < columns
    from_later = tl.zeros((BLOCK,), dtype=of_initial.dtype.element_ty)
    at = k + last
    for back in range(steps):
        g = tl.load(gate + at, inside, 0)
        first = back == steps - 1
        earlier = tl.load(c + at - columns, inside & (not first), 0)
        before = tl.where(first, tl.load(initial + k, inside, 0), earlier)
        whole = tl.load(gradient + at, inside, 0) + from_later
        tl.store(of_gate + at, whole * (before - tl.load(candidate + at, inside, 0)), inside)
        tl.store(of_candidate + at, whole * (1 - g), inside)
        from_later = whole * g
        at -= columns
    tl.store(of_initial + k, from_later, inside)


def refuses(gate: Tensor) -> str | None:
    """Why it does not take the scan, or None."""
    is_interpreted = gate.device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"
    if gate.device.type != "cuda" and not is_interpreted:
        return f"it computes on GPUs, and the gate is on {gate.device.type}"
    return None if gate.numel() else "there is nothing to compute"


def forget_scan(gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
    """See :func:`fairseq_plugins.kernels.forget_scan.forget_scan`."""
    c: Tensor = ForgetScan.apply(sys.modules[__name__], gate, candidate, initial)
    return c


def forward(gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
    """See :class:`.autograd.Loops`."""
    gate, candidate, initial = gate.contiguous(), candidate.contiguous(), initial.contiguous()
    c = torch.empty_like(gate)
    columns = initial.numel()
    with torch.cuda.device_of(gate):
        _forward[(triton.cdiv(columns, _BLOCK),)](gate, candidate, initial, c, gate.size(0), columns, BLOCK=_BLOCK)
    return c


def backward(
    gradient: Tensor, gate: Tensor, candidate: Tensor, initial: Tensor, c: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """See :class:`.autograd.Loops`."""
    read = [tensor.contiguous() for tensor in (gradient, gate, candidate, initial, c)]
    of_gate, of_candidate, of_initial = (torch.empty_like(tensor) for tensor in read[1:4])
    steps, columns = gate.size(0), initial.numel()
    with torch.cuda.device_of(gate):
        _backward[(triton.cdiv(columns, _BLOCK),)](
            *read, of_gate, of_candidate, of_initial, steps, columns, (steps - 1) * columns, BLOCK=_BLOCK
        )
    return of_gate, of_candidate, of_initial
