"""Recurrences behind one dispatch. Each backend is held to ``reference.py``, which reads like the paper."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import ModuleType

from torch import Tensor

from ..errors import InputError
from . import autograd, cpp, eager, reference, vectorized
from .interface import (
    MultiChannelOutput,
    MultiChannelParameters,
    MultiChannelState,
    Stepper,
    in_degree,
    initial_state,
)

__all__ = [
    "MultiChannelOutput",
    "MultiChannelParameters",
    "MultiChannelState",
    "Stepper",
    "conventional_stepper",
    "in_degree",
    "initial_state",
    "multi_channel_rnn",
    "multi_channel_stepper",
    "selected_backend",
]

BACKEND_VARIABLE = "FAIRSEQ_PLUGINS_BACKEND"


def _on_gpu() -> ModuleType:
    """The backend ``cuda_graph``, imported where it is asked for: only it needs triton.

    Raises:
        InputError: there is no triton.
    """
    try:
        from . import cuda_graph
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "triton":
            raise
        raise InputError(f"{BACKEND_VARIABLE}=cuda_graph needs triton: pip install triton") from error
    return cuda_graph


_SEQUENCE: dict[str, Callable[..., MultiChannelOutput]] = {
    "reference": reference.multi_channel_rnn,
    "autograd": functools.partial(vectorized.multi_channel_rnn, autograd.recurrence),
    "eager": functools.partial(vectorized.multi_channel_rnn, eager.recurrence),
    "cpp": cpp.multi_channel_rnn,
    "cuda_graph": lambda *arguments: _on_gpu().multi_channel_rnn(*arguments),
}


def selected_backend() -> str:
    """The backend in use: ``cpp``, or what the environment variable FAIRSEQ_PLUGINS_BACKEND names.

    ``cpp`` takes what is on a CPU in the precisions that it has, and hands everything else to ``eager``. ``cuda_graph``
    takes what is on a GPU, and hands everything else to ``cpp``; it has to be named, since no GPU has tested it yet.

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


def multi_channel_stepper(parameters: MultiChannelParameters, cell: str, connection: str, batch_size: int) -> Stepper:
    """Steps of one MC-RNN layer, for about ``batch_size`` rows (any number works). Differentiable.

    What does not change from step to step is prepared once, so that the weights must not change while it is in use.
    """
    backend = selected_backend()
    if backend == "cuda_graph" and (stepper := _on_gpu().stepper(parameters, cell, connection)) is not None:
        return stepper
    if (
        backend in ("cpp", "cuda_graph")
        and (stepper := cpp.stepper(parameters, cell, connection, batch_size)) is not None
    ):
        return stepper
    step = reference.multi_channel_rnn_step if backend == "reference" else vectorized.multi_channel_rnn_step
    return functools.partial(step, parameters=parameters, cell=cell, connection=connection)


def conventional_stepper(
    weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor, cell: str, batch_size: int
) -> Stepper | None:
    """Steps of ``torch.nn.LSTM``, ``GRU`` or ``RNN``: the MC-RNN with one channel, ``gate`` and no attention.

    None where there is no kernel for it that is faster than torch's own cells.
    """
    if selected_backend() not in ("cpp", "cuda_graph"):
        return None
    parameters = MultiChannelParameters(weight_ih, None, bias_ih, bias_hh, weight_hh.unsqueeze(0), None, None)
    return cpp.stepper(parameters, cell, "gate", batch_size)
