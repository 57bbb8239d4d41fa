"""Operations behind one dispatch (``dispatch.py``). A folder for each holds its backends; all but dropout's are held to
the ``reference.py`` beside them, which reads like the paper."""

from __future__ import annotations

from torch import Tensor

from . import dispatch
from .checks import StepCheck, check_sequence
from .conventional_layers import conventional_rnn, conventional_stepper
from .dispatch import BACKEND_VARIABLE
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
    state: MultiChannelState | None,
    need_details: bool = False,
) -> MultiChannelOutput:
    """One layer of MC-RNN (Eq. 1 to 6) or HO-RNN over a sequence.

    Args:
        layer: what it computes, and its parameters.
        x: (T, B, D), right-padded.
        lengths: (B,) real tokens of each row, 0 ... T; None if there is no padding.
        state: each row's state before the first step; :func:`initial_state` if None.
        need_details: return the attention over channels too.

    Raises:
        ValueError: x, lengths or state do not fit the layer or each other (``checks.py``).
    """
    weight = layer.parameters.weight_ih
    x, lengths = check_sequence(x, lengths, state, weight.size(1), weight, initial_state(layer, 0))
    if state is None:
        state = initial_state(layer, x.size(1))
    backend = dispatch.choose("multi_channel", layer, x.size(0) * x.size(1)).module
    output: MultiChannelOutput = backend.multi_channel_rnn(layer, x, lengths, state, need_details)
    return output


def multi_channel_stepper(layer: MultiChannelLayer, batch_size: int) -> Stepper:
    """Steps of one layer of MC-RNN or HO-RNN, for about ``batch_size`` rows (any number works). Differentiable.

    What does not change from step to step is prepared once, so that the weights must not change while it is in use.

    Raises:
        ValueError: by each step, if x or the state do not fit the layer or each other.
    """
    weight = layer.parameters.weight_ih
    check = StepCheck(weight.size(1), weight, initial_state(layer, 0))
    step: Stepper = dispatch.choose("multi_channel", layer, batch_size).module.stepper(layer, batch_size)

    def checked_step(x: Tensor, state: MultiChannelState) -> tuple[Tensor, MultiChannelState]:
        check(x, state)
        return step(x, state)

    return checked_step
