"""The recurrence in plain tensor operations, vectorised over channels and batch; autograd makes the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from . import vectorized
from .specification import MultiChannelLayer, MultiChannelSpecification
from .vectorized import RecurrenceInputs, cell_step

Step = Callable[[MultiChannelSpecification, RecurrenceInputs, Sequence[Tensor], int], tuple[Tensor, Tensor]]

stepper = vectorized.stepper


def refuses(layer: MultiChannelLayer, rows: int) -> str | None:
    """It takes everything."""
    return None


def recurrence(
    specification: MultiChannelSpecification, inputs: RecurrenceInputs, step: Step = cell_step
) -> tuple[Tensor, Tensor]:
    """A recurrence as ``vectorized.py`` defines it; ``step`` is what computes :func:`.vectorized.cell_step`."""
    hidden = list(inputs.history.unbind(0))[::-1]
    cell_states = [inputs.cell_state]
    # unbind: indexing a tensor in a loop makes a backward pass that is quadratic in T.
    for gates in inputs.gates.unbind(0):
        by_lag = [
            hidden[-lag][: specification.channels - specification.shift(j)] for j, lag in enumerate(specification.lags)
        ]
        of_step = inputs._replace(gates=gates, cell_state=cell_states[-1])
        output, cell_state = step(specification, of_step, by_lag, 0)
        hidden.append(output.roll(1, dims=0))
        cell_states.append(cell_state.roll(1, dims=0))
    return torch.stack(hidden), torch.stack(cell_states)


multi_channel_rnn = functools.partial(vectorized.multi_channel_rnn, recurrence)
