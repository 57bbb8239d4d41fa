"""The layer on CPUs in C++ (``cpu.cpp``), compiled on first use.

One autograd function for a sequence, and one for a step, whose weights are prepared once for all steps.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import extension
from ..second_derivatives import differentiable_once
from .specification import (
    MultiChannelLayer,
    MultiChannelOutput,
    MultiChannelParameters,
    MultiChannelSpecification,
    MultiChannelState,
    Stepper,
    channel_slots,
)
from .vectorized import input_bias

_DTYPES = (torch.float32, torch.float64)


SOURCE = Path(__file__).with_name("cpu.cpp")


@functools.cache
def compiled() -> ModuleType | None:
    """The compiled module; None, after a warning, where it cannot be compiled."""
    return extension.load_where_possible(SOURCE)


def _module() -> ModuleType:
    """:func:`compiled`, behind :func:`refuses`."""
    return cast(ModuleType, compiled())


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


def _computed_in(parameters: MultiChannelParameters) -> torch.dtype:
    """:func:`compute_dtype`, behind :func:`refuses`."""
    return cast(torch.dtype, compute_dtype(parameters))


def refuses(layer: MultiChannelLayer, rows: int) -> str | None:
    """Why it does not take the layer for so many rows of input, or None: it computes on CPUs, in single and double
    precision and in bfloat16 where the CPU has it."""
    weight = layer.parameters.weight_connection
    if weight.device.type != "cpu":
        return f"it computes on CPUs, and the layer is on {weight.device.type}"
    if compute_dtype(layer.parameters) is None:
        return f"{str(weight.dtype).removeprefix('torch.')} is not among its precisions here"
    if rows == 0:
        return "there is nothing to compute"
    return None if compiled() is not None else f"it is off here: {extension.reason(SOURCE)}"


def multi_channel_rnn(
    layer: MultiChannelLayer,
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    need_details: bool = False,
) -> MultiChannelOutput:
    """See :func:`fairseq_plugins.kernels.multi_channel_rnn`."""
    specification, parameters = layer
    dtype = _computed_in(parameters)
    with torch.autocast("cpu", enabled=False):
        weights = _Weights.of(layer, dtype)
        inputs = [tensor.to(dtype) for tensor in (x, state.history, state.cell_state)]
        if torch.is_grad_enabled():
            output, alpha, history, cell_state = _Sequence.apply(specification, lengths, *inputs, *weights)
        else:
            call = (*inputs, lengths)
            output, alpha, history, cell_state, _ = _module().forward(weights.compiled(specification), call, False)
    time = state.time + (x.size(0) if lengths is None else lengths)
    last = MultiChannelState(history.type_as(state.history), cell_state.type_as(state.cell_state), time)
    if not need_details or not specification.has_attention:
        return MultiChannelOutput(output, last, {})
    by_channel = alpha.to(dtype).gather(-1, channel_slots(state.time, x.size(0), specification.channels))
    return MultiChannelOutput(output, last, {"channel_attention": by_channel})


def stepper(layer: MultiChannelLayer, batch_size: int) -> Stepper:
    """See :func:`fairseq_plugins.kernels.multi_channel_stepper`."""
    return _Stepper(layer, batch_size)


@functools.cache
def _compiled_specification(specification: MultiChannelSpecification) -> Any:
    return _module().Specification(
        specification.cell,
        specification.connection == "state",
        specification.lags,
        specification.channels,
        specification.is_staggered,
        specification.has_attention,
    )


class _Weights(NamedTuple):
    """The parameters as the kernels read them; see ``layer.h``."""

    weight_input: Tensor  # (G * H + A, D)
    bias_input: Tensor  # (G * H + A,)
    candidate_bias: Tensor | None
    weight_hh: Tensor | None
    weight_connection: Tensor
    v_hidden: Tensor | None  # (A, H)
    score: Tensor | None  # (A,)

    @classmethod
    def of(cls, layer: MultiChannelLayer, dtype: torch.dtype) -> _Weights:
        parameters = layer.parameters
        hidden_size = parameters.weight_connection.size(-1)
        bias, candidate_bias = input_bias(layer)
        weight, v_hidden = parameters.weight_ih, None
        if parameters.attention_v is not None:
            v_hidden, v_input = parameters.attention_v.split([hidden_size, weight.size(1)], dim=1)
            weight, bias = torch.cat([weight, v_input]), F.pad(bias, (0, v_input.size(0)))
        recurrent = (parameters.weight_hh, parameters.weight_connection, v_hidden, parameters.attention_r)
        tensors = (weight, bias, candidate_bias, *recurrent)
        return cls._make(None if tensor is None else tensor.to(dtype) for tensor in tensors)

    def compiled(self, specification: MultiChannelSpecification) -> Any:
        return _module().Weights(_compiled_specification(specification), *self)


class _Sequence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        specification: MultiChannelSpecification,
        lengths: Tensor | None,
        x: Tensor,
        history: Tensor,
        cell_state: Tensor,
        *weights: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        call = (x, history, cell_state, lengths)
        keep = any(ctx.needs_input_grad)
        layer = _Weights._make(weights).compiled(specification)
        output, alpha, last_history, last_cell_state, saved = _module().forward(layer, call, keep)
        if keep:
            ctx.save_for_backward(*call, *weights, *saved)
            ctx.specification, ctx.is_overwritten = specification, False
        ctx.set_materialize_grads(False)
        return output, alpha, last_history, last_cell_state

    @staticmethod
    @differentiable_once("autograd")
    def backward(
        ctx: Any,
        grad_output: Tensor | None,
        grad_alpha: Tensor | None,
        grad_history: Tensor | None,
        grad_cell_state: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        tensors, size = ctx.saved_tensors, len(_Weights._fields)
        call, weights, saved = tensors[:4], _Weights._make(tensors[4 : 4 + size]), tensors[4 + size :]
        layer = weights.compiled(ctx.specification)
        if ctx.is_overwritten:
            # A second pass through a retained graph: the first one worked in the saved buffers.
            saved = _module().forward(layer, call, True)[-1]
        ctx.is_overwritten = True
        _, _, needs_x, needs_history, needs_cell_state, *_ = ctx.needs_input_grad
        upstream = [grad_output, grad_alpha, grad_history, _unless_empty(grad_cell_state)]
        needs_state = needs_history or needs_cell_state
        return None, None, *_module().backward(layer, call, list(saved), upstream, needs_x, needs_state)


class _Stepper:
    """Steps of one layer with weights that are prepared once.

    In the backward pass each step adds its share of the gradients of the weights to sums that ``_StepWeights`` returns
    at the end: autograd calls it when it has gone through all the steps, since each of them reads its result.
    """

    def __init__(self, layer: MultiChannelLayer, batch_size: int) -> None:
        self._dtype = _computed_in(layer.parameters)
        with torch.autocast("cpu", enabled=False):
            weights = _Weights.of(layer, self._dtype)
        detached = _Weights._make(None if weight is None else weight.detach() for weight in weights)
        self._steps = _module().Steps(detached.compiled(layer.specification), batch_size)
        self._weights = _StepWeights.apply(self._steps, *weights)

    def __call__(self, x: Tensor, state: MultiChannelState) -> tuple[Tensor, MultiChannelState]:
        x, history, cell_state = (_as(tensor, self._dtype) for tensor in (x, state.history, state.cell_state))
        if torch.is_grad_enabled():
            output, history, cell_state = _Step.apply(self._steps, self._weights, x, history, cell_state)
        else:
            output, history, cell_state, _ = self._steps.forward(x, history, cell_state, False)
        history, cell_state = _as(history, state.history.dtype), _as(cell_state, state.cell_state.dtype)
        return output, MultiChannelState(history, cell_state, state.time + 1)


class _StepWeights(torch.autograd.Function):
    """Stands for the weights of all steps."""

    @staticmethod
    def forward(ctx: Any, steps: Any, weight_input: Tensor, *others: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight_input, *others)
        ctx.steps = steps
        return weight_input.new_zeros(())

    @staticmethod
    @differentiable_once("autograd")
    def backward(ctx: Any, grad_weights: Tensor) -> tuple[Tensor | None, ...]:
        # Raises if a weight has been changed since: the steps read them again in their backward pass.
        _ = ctx.saved_tensors
        return None, *ctx.steps.take_gradients(torch._C._current_graph_task_id())


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, steps: Any, weights: Tensor, x: Tensor, history: Tensor, cell_state: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        keep = any(ctx.needs_input_grad)
        output, next_history, next_cell_state, saved = steps.forward(x, history, cell_state, keep)
        if keep:
            ctx.save_for_backward(x, history, cell_state, *saved)
            ctx.steps, ctx.is_overwritten = steps, False
        ctx.set_materialize_grads(False)
        return output, next_history, next_cell_state

    @staticmethod
    @differentiable_once("autograd")
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_history: Tensor | None, grad_cell_state: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        kept = ctx.saved_tensors  # once: a checkpoint hands them out one time
        inputs, saved = kept[:3], kept[3:]
        if ctx.is_overwritten:
            saved = ctx.steps.forward(*inputs, True)[-1]
        ctx.is_overwritten = True
        # Whether this pass wants them: what is summed and not collected would be the next pass's.
        needs_weights = ctx.needs_input_grad[1] and torch._C._will_engine_execute_node(ctx.next_functions[0][0])
        upstream = [grad_output, grad_history, _unless_empty(grad_cell_state)]
        number = torch._C._current_graph_task_id() if needs_weights else None
        gradients = ctx.steps.backward(*inputs, list(saved), upstream, number)
        return None, inputs[0].new_zeros(()) if needs_weights else None, *gradients


def _as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    # A call of ``to`` takes a hundredth of a step where there is nothing to do.
    return tensor if tensor.dtype is dtype else tensor.to(dtype)


def _unless_empty(gradient: Tensor | None) -> Tensor | None:
    """Cells without a cell state have one of width 0."""
    return gradient if gradient is not None and gradient.numel() else None
