"""The layer on CPUs in C++ (``multi_channel_rnn.cpp``), compiled on first use.

One autograd function for a sequence, and one for a step, whose weights are prepared once for all steps.
"""

from __future__ import annotations

import functools
import logging
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from . import eager, extension, vectorized
from .interface import (
    MultiChannelOutput,
    MultiChannelParameters,
    MultiChannelState,
    Stepper,
    channel_slots,
)

logger = logging.getLogger(__name__)

_DTYPES = (torch.float32, torch.float64)


@functools.cache
def compiled() -> ModuleType | None:
    """The compiled module; None, after one warning, where it cannot be compiled."""
    try:
        return extension.load(Path(__file__).with_name("multi_channel_rnn.cpp"))
    except (RuntimeError, OSError, ImportError, subprocess.SubprocessError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        logger.warning(f"the C++ kernels cannot be compiled here, so MC-RNN runs on slower ones: {reason}")
        return None


@functools.cache
def has_bfloat16() -> bool:
    """Whether this CPU multiplies in bfloat16; where it does not, it is slower than single precision."""
    probe = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(probe is not None and probe())


def compute_dtype(parameters: MultiChannelParameters) -> torch.dtype | None:
    """What the kernels compute in: the parameters' precision, or bfloat16 under autocast to it; None where it is not
    theirs: single, double, and bfloat16 on CPUs that have it, on the CPU alone."""
    weight = parameters.weight_connection
    if weight.device.type != "cpu":
        return None
    if torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16:
        is_bfloat16 = weight.dtype in (torch.float32, torch.bfloat16)
    else:
        is_bfloat16 = weight.dtype == torch.bfloat16
    if is_bfloat16 and has_bfloat16():
        return torch.bfloat16
    return weight.dtype if weight.dtype in _DTYPES else None


def multi_channel_rnn(
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    parameters: MultiChannelParameters,
    cell: str,
    connection: str,
    need_channel_attention: bool = False,
) -> MultiChannelOutput:
    """See :func:`fairseq_plugins.kernels.multi_channel_rnn`. What the kernels do not take goes to ``eager``."""
    dtype = compute_dtype(parameters)
    if dtype is None or x.size(0) * x.size(1) == 0 or compiled() is None:
        return vectorized.multi_channel_rnn(
            eager.recurrence, x, lengths, state, parameters, cell, connection, need_channel_attention
        )
    with torch.autocast("cpu", enabled=False):
        weights = _Weights.of(parameters, cell, dtype)
        inputs = [tensor.to(dtype) for tensor in (x, state.history, state.memory)]
        if torch.is_grad_enabled():
            output, alpha, history, memory = _Sequence.apply(cell, parameters.channels, lengths, *inputs, *weights)
        else:
            output, alpha, history, memory, _ = compiled().forward(
                cell, parameters.channels, *inputs, *weights, lengths, False
            )
    time = state.time + (x.size(0) if lengths is None else lengths)
    last = MultiChannelState(history.type_as(state.history), memory.type_as(state.memory), time)
    if not need_channel_attention or parameters.attention_v is None:
        return MultiChannelOutput(output, last, None)
    by_channel = alpha.to(dtype).gather(-1, channel_slots(state.time, x.size(0), parameters.channels))
    return MultiChannelOutput(output, last, by_channel)


def stepper(parameters: MultiChannelParameters, cell: str, connection: str, batch_size: int) -> Stepper | None:
    """See :func:`fairseq_plugins.kernels.multi_channel_stepper`. None where the kernels do not take it."""
    dtype = compute_dtype(parameters)
    if dtype is None or batch_size == 0 or compiled() is None:
        return None
    return _Stepper(parameters, cell, batch_size, dtype)


class _Weights(NamedTuple):
    """The parameters as the kernels read them.

    ``weight_input`` and ``bias_input`` make the input's share of the gates, with all biases but the GRU's of its
    candidate, and of the K numbers that stand in tanh of Eq. 6.
    """

    weight_input: Tensor  # (G * H + K, D)
    bias_input: Tensor  # (G * H + K,)
    candidate_bias: Tensor | None
    weight_hh: Tensor | None
    weight_connection: Tensor
    v_hidden: Tensor | None  # (K, H)
    score: Tensor | None  # (K,)

    @classmethod
    def of(cls, parameters: MultiChannelParameters, cell: str, dtype: torch.dtype) -> _Weights:
        hidden_size = parameters.weight_connection.size(-1)
        bias, candidate_bias = vectorized.input_bias(parameters, cell)
        weight, v_hidden = parameters.weight_ih, None
        if parameters.attention_v is not None:
            v_hidden, v_input = parameters.attention_v.split([hidden_size, weight.size(1)], dim=1)
            weight, bias = torch.cat([weight, v_input]), F.pad(bias, (0, v_input.size(0)))
        recurrent = (parameters.weight_hh, parameters.weight_connection, v_hidden, parameters.attention_r)
        tensors = (weight, bias, candidate_bias, *recurrent)
        return cls(*(None if tensor is None else tensor.to(dtype) for tensor in tensors))


class _Sequence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        cell: str,
        channels: int,
        lengths: Tensor | None,
        x: Tensor,
        history: Tensor,
        memory: Tensor,
        *weights: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        arguments = (x, history, memory, *weights, lengths)
        keep = any(ctx.needs_input_grad)
        output, alpha, last_history, last_memory, saved = compiled().forward(cell, channels, *arguments, keep)
        if keep:
            ctx.save_for_backward(*arguments, *saved)
            ctx.arguments, ctx.layer, ctx.is_overwritten = len(arguments), (cell, channels), False
        ctx.set_materialize_grads(False)
        return output, alpha, last_history, last_memory

    @staticmethod
    def backward(
        ctx: Any,
        grad_output: Tensor | None,
        grad_alpha: Tensor | None,
        grad_history: Tensor | None,
        grad_memory: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        _refuse_second_derivative()
        arguments, saved = ctx.saved_tensors[: ctx.arguments], ctx.saved_tensors[ctx.arguments :]
        if ctx.is_overwritten:
            # A second pass through a retained graph: the first one worked in the saved buffers.
            saved = compiled().forward(*ctx.layer, *arguments, True)[-1]
        ctx.is_overwritten = True
        _, _, _, needs_x, needs_history, needs_memory, *_ = ctx.needs_input_grad
        gradients = compiled().backward(
            *ctx.layer,
            *arguments,
            list(saved),
            grad_output,
            grad_alpha,
            grad_history,
            _unless_empty(grad_memory),
            needs_x,
            needs_history or needs_memory,
        )
        return None, None, None, *gradients


class _Stepper:
    """Steps of one layer with weights that are prepared once.

    In the backward pass each step adds its share of the gradients of the weights to sums that ``_StepWeights`` returns
    at the end: autograd calls it when it has gone through all the steps, since each of them reads its result.
    """

    def __init__(self, parameters: MultiChannelParameters, cell: str, batch_size: int, dtype: torch.dtype) -> None:
        with torch.autocast("cpu", enabled=False):
            weights = _Weights.of(parameters, cell, dtype)
        self._dtype = dtype
        detached = (None if weight is None else weight.detach() for weight in weights)
        self._steps = compiled().Steps(cell, parameters.channels, *detached, batch_size)
        self._weights = _StepWeights.apply(self._steps, *weights)

    def __call__(self, x: Tensor, state: MultiChannelState) -> tuple[Tensor, MultiChannelState]:
        x, history, memory = (tensor.to(self._dtype) for tensor in (x, state.history, state.memory))
        if torch.is_grad_enabled():
            output, history, memory = _Step.apply(self._steps, self._weights, x, history, memory)
        else:
            output, history, memory, _ = self._steps.forward(x, history, memory, False)
        return output, MultiChannelState(history.type_as(state.history), memory.type_as(state.memory), state.time + 1)


class _StepWeights(torch.autograd.Function):
    """Stands for the weights of all steps."""

    @staticmethod
    def forward(ctx: Any, steps: Any, *weights: Tensor | None) -> Tensor:
        ctx.save_for_backward(*weights)
        ctx.steps = steps
        return weights[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, grad_weights: Tensor) -> tuple[Tensor | None, ...]:
        # Raises if a weight has been changed since: the steps read them again in their backward pass.
        _ = ctx.saved_tensors
        return None, *ctx.steps.take_gradients()


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, steps: Any, weights: Tensor, x: Tensor, history: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        keep = any(ctx.needs_input_grad)
        output, next_history, next_memory, saved = steps.forward(x, history, memory, keep)
        if keep:
            ctx.save_for_backward(x, history, memory, *saved)
            ctx.steps, ctx.is_overwritten = steps, False
        ctx.set_materialize_grads(False)
        return output, next_history, next_memory

    @staticmethod
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_history: Tensor | None, grad_memory: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        _refuse_second_derivative()
        inputs, saved = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
        if ctx.is_overwritten:
            saved = ctx.steps.forward(*inputs, True)[-1]
        ctx.is_overwritten = True
        needs_weights = ctx.needs_input_grad[1]
        gradients = ctx.steps.backward(
            *inputs, list(saved), grad_output, grad_history, _unless_empty(grad_memory), needs_weights
        )
        return None, inputs[0].new_zeros(()) if needs_weights else None, *gradients


def _unless_empty(gradient: Tensor | None) -> Tensor | None:
    """Cells without a memory have one of width 0."""
    return gradient if gradient is not None and gradient.numel() else None


def _refuse_second_derivative() -> None:
    if torch.is_grad_enabled():
        raise RuntimeError(
            "MC-RNN's C++ kernels have no second derivatives: set FAIRSEQ_PLUGINS_BACKEND=autograd for create_graph"
        )
