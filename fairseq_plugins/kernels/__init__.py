"""Recurrences behind one dispatch (``dispatch.py``). A folder for each operation holds its backends, each held to the
``reference.py`` beside it, which reads like the paper."""

from __future__ import annotations

from torch import Tensor

from . import dispatch
from .conventional import conventional_rnn, conventional_stepper
from .dispatch import BACKEND_VARIABLE
from .multi_channel.lengths import checked_lengths
from .multi_channel.specification import (
    MultiChannelLayer,
    MultiChannelOutput,
    MultiChannelParameters,
    MultiChannelSpecification,
    MultiChannelState,
    Stepper,
    in_degree,
    initial_state,
)

__all__ = [
    "BACKEND_VARIABLE",
    "MultiChannelLayer",
    "MultiChannelOutput",
    "MultiChannelParameters",
    "MultiChannelSpecification",
    "MultiChannelState",
    "Stepper",
    "conventional_rnn",
    "conventional_stepper",
    "in_degree",
    "initial_state",
    "multi_channel_rnn",
    "multi_channel_stepper",
]


def multi_channel_rnn(
    layer: MultiChannelLayer,
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    need_details: bool = False,
) -> MultiChannelOutput:
    """One layer of MC-RNN (Eq. 1 to 6) or HO-RNN over a sequence.

    Args:
        layer: what it computes, and its parameters.
        x: (T, B, D), right-padded.
        lengths: (B,) real tokens of each row, 0 ... T; None if there is no padding.
        state: each row's state before the first step.
        need_details: return the attention over channels too.

    Raises:
        ValueError: lengths are not one whole number for each row, or not in 0 ... T; the latter is seen on CPUs only.
    """
    lengths = checked_lengths(lengths, x)
    backend = dispatch.choose("multi_channel", layer, x.size(0) * x.size(1)).module
    return backend.multi_channel_rnn(layer, x, lengths, state, need_details)


def multi_channel_stepper(layer: MultiChannelLayer, batch_size: int) -> Stepper:
    """Steps of one layer of MC-RNN or HO-RNN, for about ``batch_size`` rows (any number works). Differentiable.

    What does not change from step to step is prepared once, so that the weights must not change while it is in use.
    """
    return dispatch.choose("multi_channel", layer, batch_size).module.stepper(layer, batch_size)
