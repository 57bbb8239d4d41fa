"""A backend of RCRN's scan that stands for one on a GPU, on the CPU: what is wrong with it, its name says.

    python tests/kernels/fake_gpu.py DEVICE OPERATION=BACKEND [OPERATION=BACKEND ...]

compares it as ``fairseq_plugins.kernels.comparison`` would.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from types import ModuleType

import torch
from torch import Tensor

from fairseq_plugins.kernels import comparison, dispatch
from fairseq_plugins.kernels.dispatch import Backend
from fairseq_plugins.kernels.forget_scan import cpu, eager

KINDS = ("right", "wrong", "wrong gradient", "no number", "slow", "raises", "refuses", "crashes", "hangs")


class Scan(ModuleType):
    """A backend's module."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind

    def refuses(self, gate: Tensor) -> str | None:
        return "it takes nothing" if self.kind == "refuses" else None

    def forget_scan(self, gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
        if self.kind == "right":
            # In C++, and so faster than eager.
            return cpu.forget_scan(gate, candidate, initial)
        if self.kind == "slow":
            time.sleep(0.1)
        if self.kind == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.kind == "hangs":
            time.sleep(1000)
        if self.kind == "raises":
            raise torch.OutOfMemoryError("no memory is left\nand so on")
        c = eager.forget_scan(gate, candidate, initial)
        if self.kind == "wrong gradient":
            return c + 0.1 * (gate - gate.detach())
        factor = {"wrong": 1.01, "no number": float("nan")}.get(self.kind, 1.0)
        return c * factor


def backends(*kinds: str) -> tuple[Backend, ...]:
    """The rows of the table, with the modules of these kinds."""
    for kind in kinds:
        sys.modules[f"fairseq_plugins.kernels.forget_scan.{kind}"] = Scan(kind)
    measured = [Backend(kind, f"forget_scan.{kind}", is_measured=True) for kind in kinds]
    whole = [Backend(name, f"forget_scan.{name}") for name in ("eager", "reference")]
    return (*measured, *whole)


def program() -> list[str]:
    """The command that compares."""
    return [sys.executable, __file__]


if __name__ == "__main__":
    dispatch.OPERATIONS["forget_scan"] = backends(*KINDS)
    comparison.main(sys.argv[1:])
