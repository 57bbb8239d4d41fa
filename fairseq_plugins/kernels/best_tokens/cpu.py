"""The best tokens on CPUs in C++ (``cpu.cpp``), compiled on first use: one pass for the best, one for the sum."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType
from typing import cast

import torch
from torch import Tensor

from .. import extension

SOURCE = Path(__file__).with_name("cpu.cpp")


@functools.cache
def compiled() -> ModuleType | None:
    """The compiled module; None, after a warning, where it cannot be compiled."""
    return extension.load_where_possible(SOURCE)


def refuses(logits: Tensor) -> str | None:
    """Why it does not take the logits, or None: it computes on CPUs, in single precision."""
    if logits.device.type != "cpu":
        return f"it computes on CPUs, and the logits are on {logits.device.type}"
    if logits.dtype != torch.float32:
        return "it takes single precision"
    return None if compiled() is not None else f"it is off here: {extension.reason(SOURCE)}"


def best_tokens(logits: Tensor, first: int, count: int) -> tuple[Tensor, Tensor]:
    """See :func:`fairseq_plugins.kernels.best_tokens.best_tokens`."""
    result: tuple[Tensor, Tensor] = cast(ModuleType, compiled()).best_tokens(logits.detach(), first, count)
    return result
