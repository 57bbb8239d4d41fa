"""The scan on CPUs in C++ (``cpu.cpp``), compiled on first use."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from .. import extension
from .autograd import ForgetScan

SOURCE = Path(__file__).with_name("cpu.cpp")


@functools.cache
def compiled() -> ModuleType | None:
    """The compiled module, which is :class:`.autograd.Loops`; None, after a warning, where it cannot be compiled."""
    return extension.load_where_possible(SOURCE)


def refuses(gate: Tensor) -> str | None:
    """Why it does not take the scan, or None: it computes on CPUs, in single and double precision."""
    if gate.device.type != "cpu":
        return f"it computes on CPUs, and the gate is on {gate.device.type}"
    if gate.dtype not in (torch.float32, torch.float64):
        return f"{str(gate.dtype).removeprefix('torch.')} is not among its precisions"
    if gate.numel() == 0:
        return "there is nothing to compute"
    return None if compiled() is not None else f"it is off here: {extension.reason(SOURCE)}"


def forget_scan(gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
    """See :func:`fairseq_plugins.kernels.forget_scan.forget_scan`."""
    c: Tensor = ForgetScan.apply(compiled(), gate, candidate, initial)
    return c
