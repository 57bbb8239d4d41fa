"""The layer around a vectorised recurrence: input projections, channel attention and state, outside the loop over time.

A *recurrence* runs Eq. 2 and 3 over all time steps for channels and batch at once, in slot order
(``specification.py``): from a specification and :class:`RecurrenceInputs` it makes ``hidden`` (L + T, C slots, B, H),
whose first L rows are the history, oldest first, and ``cell_states`` (1 + T, C slots, B, H or 0), whose first row is
the cell state given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from .specification import (
    MultiChannelLayer,
    MultiChannelOutput,
    MultiChannelParameters,
    MultiChannelSpecification,
    MultiChannelState,
    Stepper,
    channel_slots,
)


class RecurrenceInputs(NamedTuple):
    """The tensors that a recurrence reads."""

    gates: Tensor  # (T, B, G * H): the input's share of the gates, with every bias that is added to it
    candidate_bias: Tensor | None  # (H,): the GRU's bias of the candidate inside the reset gate
    history: Tensor  # (L, C slots, B, H), newest first
    cell_state: Tensor  # (C slots, B, H or 0)
    weight_hh: Tensor | None
    weight_connection: Tensor


Recurrence = Callable[[MultiChannelSpecification, RecurrenceInputs], tuple[Tensor, Tensor]]


def input_bias(layer: MultiChannelLayer) -> tuple[Tensor, Tensor | None]:
    """All biases that are added to the input's share of the gates (G * H,), and the GRU's candidate bias (H,)."""
    parameters = layer.parameters
    if layer.specification.cell != "gru":
        return parameters.bias_ih + parameters.bias_hh, None
    hidden_size = parameters.weight_connection.size(-1)
    outside, inside = parameters.bias_hh.split([2 * hidden_size, hidden_size])
    return parameters.bias_ih + F.pad(outside, (0, hidden_size)), inside


def input_gates(x: Tensor, layer: MultiChannelLayer) -> tuple[Tensor, Tensor | None]:
    """The input's share of the gates, shared by all channels: (..., G * H), and the GRU's candidate bias (H,)."""
    bias, candidate_bias = input_bias(layer)
    return F.linear(x, layer.parameters.weight_ih, bias), candidate_bias


def attend(hidden: Tensor, x: Tensor, parameters: MultiChannelParameters, channel_dim: int) -> tuple[Tensor, Tensor]:
    """Attention over channels (Eq. 4 to 6).

    Args:
        hidden: outputs of all channels (..., H), the channels along ``channel_dim`` (negative).
        x: the layer's input (..., D), without that dimension.

    Returns:
        the weighted sum (..., H) and the weights, shaped as ``hidden`` without its last dimension.
    """
    # None only without attention.
    v, r = cast(Tensor, parameters.attention_v), cast(Tensor, parameters.attention_r)
    v_hidden, v_input = v.split([hidden.size(-1), x.size(-1)], dim=1)
    projected = F.linear(hidden, v_hidden) + F.linear(x, v_input).unsqueeze(channel_dim)
    scores = torch.tanh(projected) @ r
    # Softmax in float32: half precision loses the small weights.
    weights = torch.softmax(scores, dim=channel_dim + 1, dtype=_at_least_float32(scores)).type_as(scores)
    return (weights.unsqueeze(-1) * hidden).sum(channel_dim), weights


def multi_channel_rnn(
    recurrence: Recurrence,
    layer: MultiChannelLayer,
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    need_details: bool = False,
) -> MultiChannelOutput:
    """See :func:`fairseq_plugins.kernels.multi_channel_rnn`."""
    specification, parameters = layer
    steps, batch_size, _ = x.shape
    longest = specification.longest_lag
    gates, candidate_bias = input_gates(x, layer)
    inputs = RecurrenceInputs(
        gates,
        candidate_bias,
        state.history.permute(1, 2, 0, 3),
        state.cell_state.transpose(0, 1),
        parameters.weight_hh,
        parameters.weight_connection,
    )
    hidden, cell_states = recurrence(specification, inputs)
    if specification.has_attention:
        output, weights = attend(hidden[longest:], x, parameters, channel_dim=-3)
    else:
        output, weights = hidden[longest:].squeeze(1), None

    if lengths is None:
        history = hidden[steps:].flip(0).permute(2, 0, 1, 3)
        final = MultiChannelState(history, cell_states[steps].transpose(0, 1), state.time + steps)
    else:
        rows = torch.arange(batch_size, device=x.device)
        history = torch.stack([hidden[lengths + longest - j, :, rows] for j in range(1, longest + 1)], dim=1)
        final = MultiChannelState(history, cell_states[lengths, :, rows], state.time + lengths)
        padding = (torch.arange(steps, device=x.device).unsqueeze(1) >= lengths).unsqueeze(-1)
        output = output.masked_fill(padding, 0)
    if not need_details or weights is None:
        return MultiChannelOutput(output, final, {})

    by_channel = weights.transpose(1, 2).gather(-1, channel_slots(state.time, steps, specification.channels))
    if lengths is not None:
        by_channel = by_channel.masked_fill(padding, 0)
    return MultiChannelOutput(output, final, {"channel_attention": by_channel})


def stepper(layer: MultiChannelLayer, batch_size: int) -> Stepper:
    """See :func:`fairseq_plugins.kernels.multi_channel_stepper`."""
    return functools.partial(_step, layer)


def cell_step(
    specification: MultiChannelSpecification, inputs: RecurrenceInputs, by_lag: Sequence[Tensor], slot_dim: int
) -> tuple[Tensor, Tensor]:
    """One time step of all channels (Eq. 2 and 3).

    Args:
        specification: what it computes.
        inputs: of which ``gates`` is the input's share, broadcastable to (slots and batch, G * H), ``cell_state`` is
            c(t - 1), and ``history`` is not read.
        by_lag: for each lag j, h(t - j) of the slots that W_j reads, along ``slot_dim``.
        slot_dim: 0 or 1.

    Returns:
        h(t) and c(t) in the slots of time t (the caller rolls them to those of t + 1).
    """
    gates, candidate_bias, _, cell_state, weight_hh, weight_connection = inputs
    cell = specification.cell
    hidden_size = weight_connection.size(-1)
    shape = [1, 1, 1]
    shape[slot_dim] = specification.channels

    s = sum(
        _from_slot(F.linear(h, weight_connection[j]), specification.shift(j), slot_dim) for j, h in enumerate(by_lag)
    ) / specification.divisors(gates).view(shape)  # Eq. 2
    from_history = interpolated = s
    if weight_hh is not None:
        from_history = F.linear(s, weight_hh)
    elif cell == "gru":
        summed = sum(_from_slot(h, specification.shift(j), slot_dim) for j, h in enumerate(by_lag))
        interpolated = summed / specification.outputs_read(gates).view(shape)

    if cell == "lstm":
        i, f, g, o = (gates + from_history).split(hidden_size, dim=-1)
        cell_state = torch.sigmoid(f) * cell_state + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell_state), cell_state
    if candidate_bias is not None:  # the GRU alone has one
        r, z = torch.sigmoid(gates[..., : 2 * hidden_size] + from_history[..., : 2 * hidden_size]).chunk(2, dim=-1)
        n = torch.tanh(gates[..., 2 * hidden_size :] + r * (from_history[..., 2 * hidden_size :] + candidate_bias))
        return n + z * (interpolated - n), cell_state
    return torch.tanh(gates + from_history), cell_state


def _step(layer: MultiChannelLayer, x: Tensor, state: MultiChannelState) -> tuple[Tensor, MultiChannelState]:
    specification, parameters = layer
    history, cell_state, time = state
    gates, candidate_bias = input_gates(x, layer)
    by_lag = [
        history[:, lag - 1, : specification.channels - specification.shift(j)]
        for j, lag in enumerate(specification.lags)
    ]
    inputs = RecurrenceInputs(
        gates.unsqueeze(1), candidate_bias, history, cell_state, parameters.weight_hh, parameters.weight_connection
    )
    hidden, cell_state = cell_step(specification, inputs, by_lag, slot_dim=1)
    output = attend(hidden, x, parameters, channel_dim=-2)[0] if specification.has_attention else hidden.squeeze(1)
    history = torch.cat([hidden.roll(1, dims=1).unsqueeze(1), history[:, :-1]], dim=1)
    return output, MultiChannelState(history, cell_state.roll(1, dims=1), time + 1)


def _from_slot(x: Tensor, first: int, slot_dim: int) -> Tensor:
    """Puts zeros before ``x``, so that its first slot becomes slot ``first``."""
    if not first:
        return x
    # Not torch.nn.functional.pad: that of PyTorch 2.5 refuses batches without rows.
    return torch.cat([x.new_zeros(*x.shape[:slot_dim], first, *x.shape[slot_dim + 1 :]), x], slot_dim)


def _at_least_float32(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)
