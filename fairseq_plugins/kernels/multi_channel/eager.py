"""The recurrence as one autograd function with a hand-written backward pass through time.

Unlike ``autograd.py`` it records no graph of small operations, works in preallocated buffers, and computes each weight
gradient by one matrix product after the loop.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..autocast import without_autocast
from ..second_derivatives import differentiable_once
from . import vectorized
from .specification import GATES, MultiChannelLayer, MultiChannelSpecification
from .vectorized import RecurrenceInputs

stepper = vectorized.stepper


def refuses(layer: MultiChannelLayer, rows: int) -> str | None:
    """It takes everything."""
    return None


def recurrence(specification: MultiChannelSpecification, inputs: RecurrenceInputs) -> tuple[Tensor, Tensor]:
    """A recurrence as ``vectorized.py`` defines it. Runs in the parameters' precision, also under autocast; the cell
    state is kept in float32 at least, since half precision loses what single steps add to it."""
    dtype = inputs.weight_connection.dtype
    with without_autocast(inputs.gates.device.type):
        inputs = inputs._replace(
            gates=inputs.gates.to(dtype),
            history=inputs.history.to(dtype),
            cell_state=inputs.cell_state.to(torch.promote_types(dtype, torch.float32)),
        )
        hidden, cell_states = _Recurrence.apply(specification, *inputs)
        # A state goes on to steps, which take no other precision.
        return hidden, cell_states.to(dtype)


multi_channel_rnn = functools.partial(vectorized.multi_channel_rnn, recurrence)


# y (1 - y) and 1 - y^2 times a gradient, each in one pass over memory.
_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


class _Recurrence(torch.autograd.Function):
    """Time t writes row L + t - 1 of ``hidden``; lag j reads row L + t - 1 - j, always the same slots of it."""

    @staticmethod
    def forward(
        ctx: Any,
        specification: MultiChannelSpecification,
        gates: Tensor,
        candidate_bias: Tensor | None,
        history: Tensor,
        cell_state: Tensor,
        weight_hh: Tensor | None,
        weight_connection: Tensor,
    ) -> tuple[Tensor, Tensor]:
        cell, connection = specification.cell, specification.connection
        steps, batch_size, width = gates.shape
        longest, channels, _, hidden_size = history.shape
        reciprocal = _reciprocal(specification.divisors(gates))

        hidden = gates.new_empty(longest + steps, channels, batch_size, hidden_size)
        hidden[:longest] = history.flip(0)
        cell_states = cell_state.new_empty(1 + steps, *cell_state.shape)
        cell_states[0] = cell_state
        # What _StepTensors says, for all steps.
        activations = gates.new_empty(steps, channels, batch_size, width)
        inner = gates.new_empty(steps, channels, batch_size, 0 if cell == "rnn" else hidden_size)
        keeps_s = connection == "state" or cell == "gru"
        temporal = gates.new_empty(steps, channels, batch_size, hidden_size if keeps_s else 0)

        for t in range(steps):
            row = longest + t
            summed = temporal[t] if connection == "state" else activations[t]
            _sum_connections(specification, summed, hidden, row, weight_connection)
            summed.mul_(reciprocal)
            if weight_hh is not None:
                torch.mm(temporal[t].view(-1, hidden_size), weight_hh.t(), out=activations[t].view(-1, width))
            elif cell == "gru":
                outputs_read = specification.outputs_read(gates)
                _sum_history(specification, temporal[t], hidden, row).mul_(_reciprocal(outputs_read))
            step = _StepTensors(activations[t], inner[t], temporal[t], cell_states[t])
            output, next_cell_state = _cell_forward(cell, gates[t], candidate_bias, step)
            _roll_into(hidden[row], output)
            if next_cell_state is not None:
                _roll_into(cell_states[t + 1], next_cell_state)

        ctx.save_for_backward(hidden, cell_states, activations, inner, temporal, weight_hh, weight_connection)
        ctx.specification = specification
        ctx.set_materialize_grads(False)
        return hidden, cell_states

    @staticmethod
    @differentiable_once("autograd")
    def backward(ctx: Any, grad_hidden: Tensor | None, grad_cell_states: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, cell_states, activations, inner, temporal, weight_hh, weight_connection = ctx.saved_tensors
        specification: MultiChannelSpecification = ctx.specification
        cell, connection = specification.cell, specification.connection
        steps, channels, batch_size, width = activations.shape
        hidden_size = hidden.size(-1)
        longest = specification.longest_lag
        reciprocal = _reciprocal(specification.divisors(hidden))

        # Gradients flow back into earlier rows of this buffer, so it must be our own.
        grad_hidden = (
            torch.zeros_like(hidden)
            if grad_hidden is None
            else grad_hidden.clone(memory_format=torch.contiguous_format)
        )
        grad_gates = hidden.new_empty(steps, batch_size, width)
        grad_activations = torch.empty_like(activations)  # of the recurrent share of the gates
        connected = temporal if connection == "state" else activations
        grad_summed = torch.empty_like(connected)  # of the sum over j in Eq. 2, before 1/m
        grad_cell_state = torch.zeros_like(cell_states[0])

        for t in reversed(range(steps)):
            row = longest + t
            if cell == "lstm" and grad_cell_states is not None:
                grad_cell_state = grad_cell_state + grad_cell_states[t + 1]
            grad_output = grad_hidden[row].roll(-1, dims=0)
            grad_cell_state = grad_cell_state.roll(-1, dims=0)
            step = _StepTensors(activations[t], inner[t], temporal[t], cell_states[t])
            grad_cell_state, grad_interpolated = _cell_backward(
                cell, step, grad_output, grad_cell_state, grad_activations[t], grad_gates[t]
            )
            if connection == "state":
                torch.mm(grad_activations[t].view(-1, width), weight_hh, out=grad_summed[t].view(-1, hidden_size))
                if grad_interpolated is not None:
                    grad_summed[t].add_(grad_interpolated)
                grad_summed[t].mul_(reciprocal)
            else:
                torch.mul(grad_activations[t], reciprocal, out=grad_summed[t])
                if grad_interpolated is not None:
                    grad_interpolated.mul_(_reciprocal(specification.outputs_read(hidden)))
            for j, lag in enumerate(specification.lags):
                rows = (channels - specification.shift(j)) * batch_size
                target = grad_hidden[row - lag].view(-1, hidden_size)[:rows]
                source = grad_summed[t].view(channels * batch_size, grad_summed.size(-1))[-rows:]
                torch.addmm(target, source, weight_connection[j], out=target)
                if connection == "gate" and grad_interpolated is not None:
                    target.add_(grad_interpolated.reshape(-1, hidden_size)[-rows:])

        grad_weight_connection = torch.empty_like(weight_connection)
        for j, lag in enumerate(specification.lags):
            shift = specification.shift(j)
            source = grad_summed[:, shift:].reshape(-1, grad_summed.size(-1))
            target = hidden[longest - lag : longest - lag + steps, : channels - shift].reshape(-1, hidden_size)
            torch.mm(source.t(), target, out=grad_weight_connection[j])
        grad_weight_hh = None
        if connection == "state":
            grad_weight_hh = grad_activations.view(-1, width).t() @ temporal.view(-1, hidden_size)
        grad_candidate_bias = None
        if cell == "gru":
            grad_candidate_bias = grad_activations[..., 2 * hidden_size :].sum((0, 1, 2))
        grad_history = grad_hidden[:longest].flip(0)
        if cell == "lstm" and grad_cell_states is not None:
            grad_cell_state = grad_cell_state + grad_cell_states[0]
        return (
            None,
            grad_gates,
            grad_candidate_bias,
            grad_history,
            grad_cell_state,
            grad_weight_hh,
            grad_weight_connection,
        )


def _sum_connections(
    specification: MultiChannelSpecification, summed: Tensor, hidden: Tensor, row: int, weight_connection: Tensor
) -> None:
    """Writes sum_j W_j h(t - j) of Eq. 2 into ``summed`` (C, B, N)."""
    channels, batch_size, width = summed.shape
    flat = summed.view(-1, width)
    hidden_size = hidden.size(-1)
    first, *others = specification.lags
    # The first lag is read by every slot.
    torch.mm(hidden[row - first].view(-1, hidden_size), weight_connection[0].t(), out=flat)
    for j, lag in enumerate(others, start=1):
        rows = (channels - specification.shift(j)) * batch_size
        target = flat[-rows:]
        torch.addmm(target, hidden[row - lag].view(-1, hidden_size)[:rows], weight_connection[j].t(), out=target)


def _sum_history(specification: MultiChannelSpecification, summed: Tensor, hidden: Tensor, row: int) -> Tensor:
    """Writes sum_j h(t - j) into ``summed`` (C, B, H)."""
    channels = summed.size(0)
    first, *others = specification.lags
    summed.copy_(hidden[row - first])
    for j, lag in enumerate(others, start=1):
        shift = specification.shift(j)
        summed[shift:] += hidden[row - lag, : channels - shift]
    return summed


class _StepTensors(NamedTuple):
    """What one step keeps for the backward pass, for all channels."""

    activations: Tensor  # (C, B, G * H): the recurrent share of the gates, then their activations
    inner: Tensor  # (C, B, H): tanh(c) of the LSTM, what the reset gate multiplies in the GRU
    temporal: Tensor  # (C, B, H): s of Eq. 2, or what the GRU interpolates with
    cell_state: Tensor  # (C, B, H): c(t - 1) of the LSTM


def _cell_forward(
    cell: str, gates: Tensor, candidate_bias: Tensor | None, step: _StepTensors
) -> tuple[Tensor, Tensor | None]:
    """Eq. 3 for all channels: h(t) and, for the LSTM, c(t). Fills what of ``step`` is kept."""
    activations, inner, temporal, cell_state = step
    hidden_size = activations.size(-1) // GATES[cell]
    if cell == "lstm":
        activations.add_(gates)
        i_f, g, o = activations.split([2 * hidden_size, hidden_size, hidden_size], dim=-1)
        i, f = i_f.sigmoid_().chunk(2, dim=-1)
        cell_state = (f * cell_state).addcmul_(i, g.tanh_())
        torch.tanh(cell_state, out=inner)
        return inner * o.sigmoid_(), cell_state
    if candidate_bias is not None:  # the GRU alone has one
        r_z, n = activations.split([2 * hidden_size, hidden_size], dim=-1)
        r, z = r_z.add_(gates[:, : 2 * hidden_size]).sigmoid_().chunk(2, dim=-1)
        torch.add(n, candidate_bias, out=inner)
        torch.addcmul(gates[:, 2 * hidden_size :], r, inner, out=n)
        return torch.lerp(n.tanh_(), temporal, z), None
    return activations.add_(gates).tanh_(), None


def _cell_backward(
    cell: str,
    step: _StepTensors,
    grad_output: Tensor,
    grad_cell_state: Tensor,
    grad_activations: Tensor,
    grad_gates: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Fills ``grad_activations`` (C, B, G * H) and ``grad_gates`` (B, G * H).

    Returns the gradients of c(t - 1) and, for the GRU, of what it interpolates with (beside the gates).
    """
    activations, inner, temporal, cell_state = step
    hidden_size = grad_output.size(-1)
    if cell == "lstm":
        i_f, g, o = activations.split([2 * hidden_size, hidden_size, hidden_size], dim=-1)
        i, f = i_f.chunk(2, dim=-1)
        grad_i_f, grad_g, grad_o = grad_activations.split([2 * hidden_size, hidden_size, hidden_size], dim=-1)
        grad_i, grad_f = grad_i_f.chunk(2, dim=-1)
        torch.mul(grad_output, inner, out=grad_o)
        _sigmoid_backward(grad_o, o, grad_input=grad_o)
        # The place of the gradient of g serves for that of tanh(c) until it is needed.
        torch.mul(grad_output, o, out=grad_g)
        grad_cell_state.add_(_tanh_backward(grad_g, inner, grad_input=grad_g))
        torch.mul(grad_cell_state, g, out=grad_i)
        torch.mul(grad_cell_state, cell_state, out=grad_f)
        _sigmoid_backward(grad_i_f, i_f, grad_input=grad_i_f)
        torch.mul(grad_cell_state, i, out=grad_g)
        _tanh_backward(grad_g, g, grad_input=grad_g)
        torch.sum(grad_activations, 0, out=grad_gates)
        return grad_cell_state.mul_(f), None
    if cell == "gru":
        r, z, n = activations.split(hidden_size, dim=-1)
        grad_r, grad_z, grad_n = grad_activations.split(hidden_size, dim=-1)
        torch.mul(grad_output, temporal - n, out=grad_z)
        _sigmoid_backward(grad_z, z, grad_input=grad_z)
        grad_interpolated = grad_output * z
        grad_candidate = _tanh_backward(grad_output - grad_interpolated, n, grad_input=torch.empty_like(n))
        torch.mul(grad_candidate, inner, out=grad_r)
        _sigmoid_backward(grad_r, r, grad_input=grad_r)
        torch.mul(grad_candidate, r, out=grad_n)
        torch.sum(grad_activations[..., : 2 * hidden_size], 0, out=grad_gates[:, : 2 * hidden_size])
        torch.sum(grad_candidate, 0, out=grad_gates[:, 2 * hidden_size :])
        return grad_cell_state, grad_interpolated
    _tanh_backward(grad_output, activations, grad_input=grad_activations)
    torch.sum(grad_activations, 0, out=grad_gates)
    return grad_cell_state, None


def _roll_into(target: Tensor, source: Tensor) -> None:
    """Writes ``source`` (C slots, ...) into ``target`` in the slot order of the next time step."""
    target[1:] = source[:-1]
    target[0] = source[-1]


def _reciprocal(by_slot: Tensor) -> Tensor:
    """(C,) -> (C, 1, 1)."""
    return (1 / by_slot).view(-1, 1, 1)
