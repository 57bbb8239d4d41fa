"""The recurrence as one autograd function with a hand-written backward pass through time.

Unlike ``autograd.py`` it records no graph of small operations, works in preallocated buffers, and computes each weight
gradient by one matrix product after the loop.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .interface import GATES, divisors, outputs_read, slot_shift


def recurrence(
    gates: Tensor,
    candidate_bias: Tensor | None,
    history: Tensor,
    memory: Tensor,
    weight_hh: Tensor | None,
    weight_connection: Tensor,
    cell: str,
    connection: str,
) -> tuple[Tensor, Tensor]:
    """A recurrence as ``vectorized.py`` defines it. Runs in the parameters' precision, also under autocast."""
    dtype = weight_connection.dtype
    with torch.autocast(gates.device.type, enabled=False):
        return _Recurrence.apply(
            gates.to(dtype),
            candidate_bias,
            history.to(dtype),
            memory.to(dtype),
            weight_hh,
            weight_connection,
            cell,
            connection,
        )


# y (1 - y) and 1 - y^2 times a gradient, each in one pass over memory.
_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


class _Recurrence(torch.autograd.Function):
    """Time t writes row L + t - 1 of ``hidden``; lag j reads row L + t - 1 - j, always the same slots of it."""

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        candidate_bias: Tensor | None,
        history: Tensor,
        memory: Tensor,
        weight_hh: Tensor | None,
        weight_connection: Tensor,
        cell: str,
        connection: str,
    ) -> tuple[Tensor, Tensor]:
        steps, batch_size, width = gates.shape
        lags, channels, _, hidden_size = history.shape
        reciprocal = _reciprocal(divisors(channels, lags, gates))

        hidden = gates.new_empty(lags + steps, channels, batch_size, hidden_size)
        hidden[:lags] = history.flip(0)
        memories = gates.new_empty(1 + steps, *memory.shape)
        memories[0] = memory
        activations = gates.new_empty(steps, channels, batch_size, width)
        # What else the cell's backward pass reads: tanh(c) of the LSTM, what the reset gate multiplies in the GRU.
        inner = gates.new_empty(steps, channels, batch_size, 0 if cell == "rnn" else hidden_size)
        # What the GRU interpolates with, and in "state" what W_hh multiplies: the temporal input s of Eq. 2.
        keeps_s = connection == "state" or cell == "gru"
        temporal = gates.new_empty(steps, channels, batch_size, hidden_size if keeps_s else 0)

        for t in range(steps):
            row = lags + t
            summed = temporal[t] if connection == "state" else activations[t]
            _sum_connections(summed, hidden, row, weight_connection)
            summed.mul_(reciprocal)
            if connection == "state":
                torch.mm(temporal[t].view(-1, hidden_size), weight_hh.t(), out=activations[t].view(-1, width))
            elif cell == "gru":
                _sum_history(temporal[t], hidden, row, lags).mul_(_reciprocal(outputs_read(channels, lags, gates)))
            output, memory = _cell_forward(
                cell, activations[t], gates[t], candidate_bias, temporal[t], memories[t], inner[t]
            )
            _roll_into(hidden[row], output)
            if memory is not None:
                _roll_into(memories[t + 1], memory)

        ctx.save_for_backward(hidden, memories, activations, inner, temporal, weight_hh, weight_connection)
        ctx.cell, ctx.connection = cell, connection
        ctx.set_materialize_grads(False)
        return hidden, memories

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hidden: Tensor | None, grad_memories: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, memories, activations, inner, temporal, weight_hh, weight_connection = ctx.saved_tensors
        cell, connection = ctx.cell, ctx.connection
        steps, channels, batch_size, width = activations.shape
        hidden_size = hidden.size(-1)
        lags = hidden.size(0) - steps
        reciprocal = _reciprocal(divisors(channels, lags, hidden))

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
        grad_memory = torch.zeros_like(memories[0])

        for t in reversed(range(steps)):
            row = lags + t
            if cell == "lstm" and grad_memories is not None:
                grad_memory = grad_memory + grad_memories[t + 1]
            grad_output = grad_hidden[row].roll(-1, dims=0)
            grad_memory = grad_memory.roll(-1, dims=0)
            grad_memory, grad_interpolated = _cell_backward(
                cell,
                grad_output,
                grad_memory,
                activations[t],
                inner[t],
                temporal[t],
                memories[t],
                grad_activations[t],
                grad_gates[t],
            )
            if connection == "state":
                torch.mm(grad_activations[t].view(-1, width), weight_hh, out=grad_summed[t].view(-1, hidden_size))
                if grad_interpolated is not None:
                    grad_summed[t].add_(grad_interpolated)
                grad_summed[t].mul_(reciprocal)
            else:
                torch.mul(grad_activations[t], reciprocal, out=grad_summed[t])
                if grad_interpolated is not None:
                    grad_interpolated.mul_(_reciprocal(outputs_read(channels, lags, hidden)))
            for j in range(1, lags + 1):
                rows = (channels - slot_shift(j, channels, lags)) * batch_size
                target = grad_hidden[row - j].view(-1, hidden_size)[:rows]
                source = grad_summed[t].view(channels * batch_size, -1)[-rows:]
                torch.addmm(target, source, weight_connection[j - 1], out=target)
                if connection == "gate" and grad_interpolated is not None:
                    target.add_(grad_interpolated.reshape(-1, hidden_size)[-rows:])

        grad_weight_connection = torch.empty_like(weight_connection)
        for j in range(1, lags + 1):
            shift = slot_shift(j, channels, lags)
            source = grad_summed[:, shift:].reshape(-1, grad_summed.size(-1))
            target = hidden[lags - j : lags - j + steps, : channels - shift].reshape(-1, hidden_size)
            torch.mm(source.t(), target, out=grad_weight_connection[j - 1])
        grad_weight_hh = None
        if connection == "state":
            grad_weight_hh = grad_activations.view(-1, width).t() @ temporal.view(-1, hidden_size)
        grad_candidate_bias = None
        if cell == "gru":
            grad_candidate_bias = grad_activations[..., 2 * hidden_size :].sum((0, 1, 2))
        grad_history = grad_hidden[:lags].flip(0)
        if cell == "lstm" and grad_memories is not None:
            grad_memory = grad_memory + grad_memories[0]
        return (
            grad_gates,
            grad_candidate_bias,
            grad_history,
            grad_memory,
            grad_weight_hh,
            grad_weight_connection,
            None,
            None,
        )


def _sum_connections(summed: Tensor, hidden: Tensor, row: int, weight_connection: Tensor) -> None:
    """Writes sum_j W_j h(t - j) of Eq. 2 into ``summed`` (C, B, N)."""
    channels, batch_size, width = summed.shape
    flat = summed.view(-1, width)
    hidden_size = hidden.size(-1)
    torch.mm(hidden[row - 1].view(-1, hidden_size), weight_connection[0].t(), out=flat)
    lags = weight_connection.size(0)
    for j in range(2, lags + 1):
        rows = (channels - slot_shift(j, channels, lags)) * batch_size
        target = flat[-rows:]
        torch.addmm(target, hidden[row - j].view(-1, hidden_size)[:rows], weight_connection[j - 1].t(), out=target)


def _sum_history(summed: Tensor, hidden: Tensor, row: int, lags: int) -> Tensor:
    """Writes sum_j h(t - j) into ``summed`` (C, B, H)."""
    channels = summed.size(0)
    summed.copy_(hidden[row - 1])
    for j in range(2, lags + 1):
        shift = slot_shift(j, channels, lags)
        summed[shift:] += hidden[row - j, : channels - shift]
    return summed


def _cell_forward(
    cell: str,
    activations: Tensor,
    gates: Tensor,
    candidate_bias: Tensor | None,
    temporal: Tensor,
    memory: Tensor,
    inner: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Eq. 3 for all channels: h(t) and, for the LSTM, c(t).

    ``activations`` holds the recurrent share of the gates and becomes their activations; ``inner`` is filled.
    """
    hidden_size = activations.size(-1) // GATES[cell]
    if cell == "lstm":
        activations.add_(gates)
        i_f, g, o = activations.split([2 * hidden_size, hidden_size, hidden_size], dim=-1)
        i, f = i_f.sigmoid_().chunk(2, dim=-1)
        memory = (f * memory).addcmul_(i, g.tanh_())
        torch.tanh(memory, out=inner)
        return inner * o.sigmoid_(), memory
    if cell == "gru":
        r_z, n = activations.split([2 * hidden_size, hidden_size], dim=-1)
        r, z = r_z.add_(gates[:, : 2 * hidden_size]).sigmoid_().chunk(2, dim=-1)
        torch.add(n, candidate_bias, out=inner)
        torch.addcmul(gates[:, 2 * hidden_size :], r, inner, out=n)
        return torch.lerp(n.tanh_(), temporal, z), None
    return activations.add_(gates).tanh_(), None


def _cell_backward(
    cell: str,
    grad_output: Tensor,
    grad_memory: Tensor,
    activations: Tensor,
    inner: Tensor,
    temporal: Tensor,
    memory: Tensor,
    grad_activations: Tensor,
    grad_gates: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Fills ``grad_activations`` (C, B, G * H) and ``grad_gates`` (B, G * H).

    Returns the gradients of c(t - 1) and, for the GRU, of what it interpolates with (beside the gates).
    """
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
        grad_memory.add_(_tanh_backward(grad_g, inner, grad_input=grad_g))
        torch.mul(grad_memory, g, out=grad_i)
        torch.mul(grad_memory, memory, out=grad_f)
        _sigmoid_backward(grad_i_f, i_f, grad_input=grad_i_f)
        torch.mul(grad_memory, i, out=grad_g)
        _tanh_backward(grad_g, g, grad_input=grad_g)
        torch.sum(grad_activations, 0, out=grad_gates)
        return grad_memory.mul_(f), None
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
        return grad_memory, grad_interpolated
    _tanh_backward(grad_output, activations, grad_input=grad_activations)
    torch.sum(grad_activations, 0, out=grad_gates)
    return grad_memory, None


def _roll_into(target: Tensor, source: Tensor) -> None:
    """Writes ``source`` (C slots, ...) into ``target`` in the slot order of the next time step."""
    target[1:] = source[:-1]
    target[0] = source[-1]


def _reciprocal(by_slot: Tensor) -> Tensor:
    """(C,) -> (C, 1, 1)."""
    return (1 / by_slot).view(-1, 1, 1)
