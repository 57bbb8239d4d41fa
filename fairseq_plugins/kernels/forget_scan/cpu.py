"""The scan on CPUs in C++ (``cpu.cpp``), compiled on first use."""

from __future__ import annotations

import functools
import logging
import subprocess
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from .. import extension

logger = logging.getLogger(__name__)


@functools.cache
def compiled() -> ModuleType | None:
    """The compiled module; None, after one warning, where it cannot be compiled."""
    try:
        return extension.load(Path(__file__).with_name("cpu.cpp"))
    except (RuntimeError, OSError, ImportError, subprocess.SubprocessError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        logger.warning(f"the C++ kernels cannot be compiled here, so forget_scan runs on slower ones: {reason}")
        return None


def takes(gate: Tensor) -> bool:
    """Whether it computes where ``gate`` is, in its precision."""
    return gate.device.type == "cpu" and gate.dtype in (torch.float32, torch.float64) and compiled() is not None


def forward(gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
    """See :func:`.eager.forward`."""
    return compiled().forward(gate, candidate, initial)


def backward(
    gradient: Tensor, gate: Tensor, candidate: Tensor, initial: Tensor, c: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """See :func:`.eager.backward`."""
    return compiled().backward(gradient, gate, candidate, initial, c)
