"""RCRN's Eq. 15, a scan without a matrix product in its loop, on the fastest backend that takes it."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ...errors import InputError
from . import cpu, eager, reference

__all__ = ["forget_scan"]

BACKEND_VARIABLE = "FAIRSEQ_PLUGINS_BACKEND"


def forget_scan(gate: Tensor, candidate: Tensor, initial: Tensor | None = None) -> Tensor:
    """c(t) = gate(t) * c(t - 1) + (1 - gate(t)) * candidate(t) (RCRN, Eq. 15), elementwise. Differentiable once.

    Args:
        gate: (T, B, F), in [0, 1]: what stays.
        candidate: (T, B, F).
        initial: c(0) (B, F); zero if None.

    Returns:
        c (T, B, F), computed and returned in float32 at least, whatever the precision of what it reads.
    """
    if gate.shape != candidate.shape or (initial is not None and initial.shape != gate.shape[1:]):
        shapes = ", ".join(str(tuple(each.shape)) for each in (gate, candidate, initial) if each is not None)
        raise ValueError(f"gate and candidate (T, B, F) and initial (B, F) do not fit each other: {shapes}")
    given = [each for each in (gate, candidate, initial) if each is not None]
    dtype = torch.float32
    for each in given:
        dtype = torch.promote_types(dtype, each.dtype)
    gate, candidate = gate.to(dtype), candidate.to(dtype)
    initial = gate.new_zeros(gate.shape[1:]) if initial is None else initial.to(dtype)
    if os.environ.get(BACKEND_VARIABLE) == "reference":
        return reference.forget_scan(gate, candidate, initial)
    if gate.numel() == 0:
        return gate * candidate
    return _ForgetScan.apply(_backend(gate), gate, candidate, initial)


def _backend(gate: Tensor) -> ModuleType:
    """The module that computes."""
    name = os.environ.get(BACKEND_VARIABLE)
    if name in ("eager", "autograd"):
        return eager
    if gate.is_cuda or name == "cuda_graph":
        triton = _triton()
        if triton is not None and triton.takes(gate):
            return triton
    return cpu if cpu.takes(gate) else eager


def _triton() -> ModuleType | None:
    """The backend ``triton``, imported where there is a GPU; None where there is no triton.

    Raises:
        InputError: there is no triton, and FAIRSEQ_PLUGINS_BACKEND asks for it.
    """
    try:
        return importlib.import_module(f"{__package__}.triton")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "triton":
            raise
        if os.environ.get(BACKEND_VARIABLE):
            raise InputError(f"{BACKEND_VARIABLE}=cuda_graph needs triton: pip install triton") from error
        return None


class _ForgetScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backend: ModuleType, gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
        c = backend.forward(gate, candidate, initial)
        ctx.backend = backend
        ctx.save_for_backward(gate, candidate, initial, c)
        return c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.backend.backward(gradient, *ctx.saved_tensors)
