"""The layer on CPUs as one autograd function in C++ (``multi_channel_rnn.cpp``), compiled on first use."""

from __future__ import annotations

import functools
import logging
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import eager, extension, vectorized
from .interface import MultiChannelOutput, MultiChannelParameters, MultiChannelState, channel_slots

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


def applies_to(x: Tensor, parameters: MultiChannelParameters) -> bool:
    """Whether the C++ kernels take this input: on the CPU, in single or double precision, with at least one element."""
    return x.device.type == "cpu" and parameters.weight_connection.dtype in _DTYPES and x.size(0) * x.size(1) > 0


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
    if not applies_to(x, parameters) or compiled() is None:
        return vectorized.multi_channel_rnn(
            eager.recurrence, x, lengths, state, parameters, cell, connection, need_channel_attention
        )
    output, weights, last = _run(x, lengths, state, parameters, cell)
    if not need_channel_attention:
        return MultiChannelOutput(output, last, None)
    steps, channels = x.size(0), parameters.weight_connection.size(0)
    return MultiChannelOutput(output, last, weights.gather(-1, channel_slots(state.time, steps, channels)))


def multi_channel_rnn_step(
    x: Tensor, state: MultiChannelState, parameters: MultiChannelParameters, cell: str, connection: str
) -> tuple[Tensor, MultiChannelState]:
    """See :func:`fairseq_plugins.kernels.multi_channel_rnn_step`: a sequence of one."""
    if not applies_to(x.unsqueeze(0), parameters) or compiled() is None:
        return vectorized.multi_channel_rnn_step(x, state, parameters, cell, connection)
    output, _, last = _run(x.unsqueeze(0), None, state, parameters, cell)
    return output.squeeze(0), last


def _run(
    x: Tensor, lengths: Tensor | None, state: MultiChannelState, parameters: MultiChannelParameters, cell: str
) -> tuple[Tensor, Tensor, MultiChannelState]:
    """Output (T, B, H), channel attention in slot order (T, B, C), and the last state."""
    gates, candidate_bias = vectorized.input_gates(x, parameters, cell)
    hidden_size, dtype = parameters.weight_connection.size(-1), parameters.weight_connection.dtype
    v_hidden, v_input = parameters.attention_v.split([hidden_size, x.size(-1)], dim=1)
    attention_input = F.linear(x, v_input)
    # In the parameters' precision, also under autocast.
    with torch.autocast("cpu", enabled=False):
        output, weights, history, memory = _Layer.apply(
            gates.to(dtype),
            attention_input.to(dtype),
            candidate_bias,
            state.history.to(dtype),
            state.memory.to(dtype),
            parameters.weight_hh,
            parameters.weight_connection,
            v_hidden,
            parameters.attention_r,
            lengths,
            cell,
        )
    time = state.time + (x.size(0) if lengths is None else lengths)
    return output, weights, MultiChannelState(history, memory, time)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        attention_input: Tensor,
        candidate_bias: Tensor | None,
        history: Tensor,
        memory: Tensor,
        weight_hh: Tensor | None,
        weight_connection: Tensor,
        v_hidden: Tensor,
        score: Tensor,
        lengths: Tensor | None,
        cell: str,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        inputs = (gates, attention_input, candidate_bias, history, memory)
        layer = (weight_hh, weight_connection, v_hidden, score, lengths)
        keep = any(ctx.needs_input_grad)
        output, weights, last_history, last_memory, saved = compiled().forward(cell, *inputs, *layer, keep)
        if keep:
            ctx.save_for_backward(*inputs, *layer, weights, *saved)
            ctx.cell, ctx.is_overwritten = cell, False
        ctx.set_materialize_grads(False)
        return output, weights, last_history, last_memory

    @staticmethod
    def backward(
        ctx: Any,
        grad_output: Tensor | None,
        grad_weights: Tensor | None,
        grad_history: Tensor | None,
        grad_memory: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "MC-RNN's C++ kernels have no second derivatives: set FAIRSEQ_PLUGINS_BACKEND=autograd for create_graph"
            )
        tensors = ctx.saved_tensors
        inputs, layer, weights, saved = tensors[:5], tensors[5:10], tensors[10], tensors[11:]
        if ctx.is_overwritten:
            # A second pass through a retained graph: the first one worked in the saved buffers.
            saved = compiled().forward(ctx.cell, *inputs, *layer, True)[-1]
        ctx.is_overwritten = True
        gates, attention_input, candidate_bias, _, memory = inputs
        if grad_output is None:
            grad_output = gates.new_zeros(*gates.shape[:2], layer[1].size(-1))
        gradients = compiled().backward(
            ctx.cell,
            gates,
            attention_input,
            candidate_bias,
            *layer,
            weights,
            list(saved),
            grad_output,
            grad_weights,
            grad_history,
            grad_memory if memory.numel() else None,
            ctx.needs_input_grad[3] or ctx.needs_input_grad[4],
        )
        return (*gradients, None, None)
