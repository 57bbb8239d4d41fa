"""Loops over time, in an export one operator of the graph.

PyTorch's exporter writes a loop as so many steps as the example has. Here it sees one operator instead (:data:`LOOP`),
and the step is exported alone; ``graphs.py`` makes a ``Scan`` of both. Outside an export a loop is one of Python's.

Symbols: B batch, T time steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..modules.recurrent.contract import RecurrentState

LOOP = "fairseq_plugins::Loop"
"""The operator that stands for a loop until it becomes a ``Scan``. It reads the states, what each step reads, and where
there are real tokens (T, B, 1); it gives the last states, and what each step gives."""

Tensors = tuple[Tensor, ...]
StepFunction = Callable[[Tensors, RecurrentState], tuple[Tensors, RecurrentState]]
"""What a step reads (B, ...) and a state (B, ...) -> what it gives (B, ...) and the next state."""


class Row(NamedTuple):
    """What one row of a tensor is: its shape and type."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor, dimensions: int) -> Row:
        """That of a tensor with so many dimensions before."""
        return cls(tuple(map(int, tensor.shape[dimensions:])), tensor.dtype)


class Loop(nn.Module):
    """A loop over time.

    Args:
        step: one step.
        is_backward: whether it goes from the last step to the first.
        owner: the module whose parameters the step reads, where it is not a module itself.

    Attributes:
        name: what the graph calls it, which is made for it.
        states, reads: a row of each tensor, as it was last called.
    """

    def __init__(self, step: StepFunction, is_backward: bool = False, owner: nn.Module | None = None) -> None:
        super().__init__()
        self.step = step
        self.owners = () if owner is None else (owner,)  # no module of this one, which is one of its own
        self.is_backward = is_backward
        self.name = ""
        self.states: list[Row] = []
        self.reads: list[Row] = []

    def forward(self, start: RecurrentState, read: Tensors, is_real: Tensor) -> tuple[RecurrentState, Tensors]:
        """Runs all steps.

        Args:
            start: the state before the first step, (B, ...).
            read: what steps read, (T, B, ...).
            is_real: (T, B, 1), False where a step changes no state.

        Returns:
            the state after the last step, and what the steps gave (T, B, ...), of any value where ``is_real`` is False.
        """
        self.states, self.reads = [Row.of(part, 1) for part in start], [Row.of(part, 2) for part in read]
        if not torch.onnx.is_in_onnx_export():
            return self._run(start, read, is_real)
        outputs, _ = self.step(tuple(part[0] for part in read), start)
        parts = torch.onnx.ops.symbolic_multi_out(
            LOOP,
            [*start, *read, is_real],
            {"name": self.name},
            dtypes=[part.dtype for part in (*start, *outputs)],
            shapes=[*(part.shape for part in start), *((is_real.size(0), *part.shape) for part in outputs)],
            version=1,
        )
        return tuple(parts[: len(start)]), tuple(parts[len(start) :])

    def body(self) -> LoopBody:
        """One step, as it is exported."""
        return LoopBody(self)

    def _run(self, state: RecurrentState, read: Tensors, is_real: Tensor) -> tuple[RecurrentState, Tensors]:
        body, steps = self.body(), range(is_real.size(0))
        outputs = []
        for t in reversed(steps) if self.is_backward else steps:
            parts = body(*state, *(part[t] for part in read), is_real[t])
            state = parts[: len(state)]
            outputs.append(parts[len(state) :])
        if self.is_backward:
            outputs.reverse()
        return state, tuple(map(torch.stack, zip(*outputs, strict=True)))


class LoopBody(nn.Module):
    """One step of a loop, which changes no state where there is padding."""

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self.loop = loop
        self.owners = nn.ModuleList(loop.owners)

    def forward(self, *tensors: Tensor) -> Tensors:
        """The states (B, ...), what the step reads (B, ...), and where it is real (B, 1) -> the next states, and what
        the step gives."""
        states = len(self.loop.states)
        before, read, is_real = tensors[:states], tensors[states:-1], tensors[-1]
        outputs, after = self.loop.step(read, before)
        kept = [
            torch.where(is_real.view(-1, *[1] * (new.dim() - 1)), new, old)
            for new, old in zip(after, before, strict=True)
        ]
        return (*kept, *outputs)
