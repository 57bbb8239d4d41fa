"""The scan as one autograd function around the loops of a backend, forward and backward."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from ..second_derivatives import differentiable_once


class Loops(Protocol):
    """What a backend brings, for at least one step of at least one column."""

    def forward(self, gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
        """c (T, ...) of gate (T, ...), candidate (T, ...) and initial (...)."""

    def backward(
        self, gradient: Tensor, gate: Tensor, candidate: Tensor, initial: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of gate, candidate and initial, out of that of c and what forward read and returned."""


class ForgetScan(torch.autograd.Function):
    """``ForgetScan.apply(loops, gate, candidate, initial)`` is c."""

    @staticmethod
    def forward(ctx: Any, loops: Loops, gate: Tensor, candidate: Tensor, initial: Tensor) -> Tensor:
        c = loops.forward(gate, candidate, initial)
        ctx.loops = loops
        ctx.save_for_backward(gate, candidate, initial, c)
        return c

    @staticmethod
    @differentiable_once("reference")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.loops.backward(gradient, *ctx.saved_tensors)
