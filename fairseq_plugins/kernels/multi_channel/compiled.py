"""The recurrence of ``autograd.py``, its step compiled by PyTorch (``torch.compile``): for GPUs, where each operation
of a step is a launch of its own and a compiled step has a few. The first passes take a minute or more.

On a CPU, where it saves little, it runs by name alone, for tests.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from .. import dispatch
from . import autograd, vectorized
from .autograd import Step
from .specification import MultiChannelLayer, MultiChannelSpecification
from .vectorized import RecurrenceInputs, cell_step

stepper = vectorized.stepper


def refuses(layer: MultiChannelLayer, rows: int) -> str | None:
    """Why it does not take the layer for so many rows of input, or None."""
    device = layer.parameters.weight_connection.device.type
    is_named = dispatch.named_backend("multi_channel") == "compiled"
    if device != "cuda" and not (device == "cpu" and is_named):
        return f"it computes on GPUs, and the layer is on {device}"
    return None if rows else "there is nothing to compute"


@functools.cache
def _compiled_step() -> Step:
    step: Step = torch.compile(cell_step)
    return step


def recurrence(specification: MultiChannelSpecification, inputs: RecurrenceInputs) -> tuple[Tensor, Tensor]:
    """A recurrence as ``vectorized.py`` defines it."""
    return autograd.recurrence(specification, inputs, _compiled_step())


multi_channel_rnn = functools.partial(vectorized.multi_channel_rnn, recurrence)
