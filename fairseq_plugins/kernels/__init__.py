"""Recurrences behind one dispatch. Each backend is held to ``reference.py``, which reads like the paper."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

from torch import Tensor

from ..files import InputError
from . import autograd, cpp, eager, reference, vectorized
from .interface import MultiChannelOutput, MultiChannelParameters, MultiChannelState, in_degree, initial_state

__all__ = [
    "MultiChannelOutput",
    "MultiChannelParameters",
    "MultiChannelState",
    "in_degree",
    "initial_state",
    "multi_channel_rnn",
    "multi_channel_rnn_step",
    "selected_backend",
]

BACKEND_VARIABLE = "FAIRSEQ_PLUGINS_BACKEND"

_SEQUENCE: dict[str, Callable[..., MultiChannelOutput]] = {
    "reference": reference.multi_channel_rnn,
    "autograd": functools.partial(vectorized.multi_channel_rnn, autograd.recurrence),
    "eager": functools.partial(vectorized.multi_channel_rnn, eager.recurrence),
    "cpp": cpp.multi_channel_rnn,
}
_STEP: dict[str, Callable[..., tuple[Tensor, MultiChannelState]]] = {
    "reference": reference.multi_channel_rnn_step,
    "autograd": vectorized.multi_channel_rnn_step,
    "eager": vectorized.multi_channel_rnn_step,
    "cpp": cpp.multi_channel_rnn_step,
}


def selected_backend() -> str:
    """The backend in use: ``cpp``, or what the environment variable FAIRSEQ_PLUGINS_BACKEND names.

    ``cpp`` takes what is on a CPU in single or double precision, and hands everything else to ``eager``.

    Raises:
        InputError: the variable names no backend.
    """
    name = os.environ.get(BACKEND_VARIABLE) or "cpp"
    if name not in _SEQUENCE:
        raise InputError(f"{BACKEND_VARIABLE}={name}: no such backend; choose from {', '.join(_SEQUENCE)}")
    return name


def multi_channel_rnn(
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    parameters: MultiChannelParameters,
    cell: str,
    connection: str,
    need_channel_attention: bool = False,
) -> MultiChannelOutput:
    """One MC-RNN layer over a sequence (Eq. 1 to 6).

    Args:
        x: (T, B, D), right-padded.
        lengths: (B,) real tokens of each row, 0 ... T; None if there is no padding.
        state: each row's state before the first step.
        cell: ``lstm``, ``gru`` or ``rnn`` (tanh).
        connection: ``state`` (W_j connect outputs, Eq. 2) or ``gate`` (W_j go into the gates; there is no
            ``weight_hh``).
    """
    return _SEQUENCE[selected_backend()](x, lengths, state, parameters, cell, connection, need_channel_attention)


def multi_channel_rnn_step(
    x: Tensor, state: MultiChannelState, parameters: MultiChannelParameters, cell: str, connection: str
) -> tuple[Tensor, MultiChannelState]:
    """One time step of one MC-RNN layer: x (B, D) -> output (B, H) and the next state. Differentiable."""
    return _STEP[selected_backend()](x, state, parameters, cell, connection)
