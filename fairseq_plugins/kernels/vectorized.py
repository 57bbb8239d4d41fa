"""The layer around a vectorised recurrence: input projections, channel attention and state, outside the loop over time.

A *recurrence* runs Eq. 2 and 3 over all time steps for channels and batch at once, in slot order (``interface.py``).
It takes

- ``gates`` (T, B, G * H): the input's share of the gates, with every bias that is added to it;
- ``candidate_bias`` (H,): the GRU's bias of the candidate inside the reset gate; None for other cells;
- ``history`` (L lags, C slots, B, H) and ``memory`` (C slots, B, H or 0): the state before the first step;
- ``weight_hh``, ``weight_connection``, ``cell``, ``connection``

and returns ``hidden`` (L + T, C slots, B, H), whose first L rows are the history, oldest first, and ``memories``
(1 + T, C slots, B, H or 0), whose first row is the memory given.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from .autograd import cell_step
from .interface import MultiChannelOutput, MultiChannelParameters, MultiChannelState, channel_slots, slot_shift

Recurrence = Callable[..., tuple[Tensor, Tensor]]


def input_bias(parameters: MultiChannelParameters, cell: str) -> tuple[Tensor, Tensor | None]:
    """All biases that are added to the input's share of the gates (G * H,), and the GRU's candidate bias (H,)."""
    if cell != "gru":
        return parameters.bias_ih + parameters.bias_hh, None
    hidden_size = parameters.weight_connection.size(-1)
    outside, inside = parameters.bias_hh.split([2 * hidden_size, hidden_size])
    return parameters.bias_ih + F.pad(outside, (0, hidden_size)), inside


def input_gates(x: Tensor, parameters: MultiChannelParameters, cell: str) -> tuple[Tensor, Tensor | None]:
    """The input's share of the gates, shared by all channels: (..., G * H), and the GRU's candidate bias (H,)."""
    bias, candidate_bias = input_bias(parameters, cell)
    return F.linear(x, parameters.weight_ih, bias), candidate_bias


def attend(
    hidden: Tensor, x: Tensor, parameters: MultiChannelParameters, channel_dim: int
) -> tuple[Tensor, Tensor | None]:
    """Attention over channels (Eq. 4 to 6); the output of the one channel where there is none.

    Args:
        hidden: outputs of all channels (..., H), the channels along ``channel_dim`` (negative).
        x: the layer's input (..., D), without that dimension.

    Returns:
        the weighted sum (..., H) and the weights, shaped as ``hidden`` without its last dimension.
    """
    if parameters.attention_v is None:
        return hidden.squeeze(channel_dim), None
    v_hidden, v_input = parameters.attention_v.split([hidden.size(-1), x.size(-1)], dim=1)
    projected = F.linear(hidden, v_hidden) + F.linear(x, v_input).unsqueeze(channel_dim)
    scores = torch.tanh(projected) @ parameters.attention_r
    # Softmax in float32: half precision loses the small weights.
    weights = torch.softmax(scores, dim=channel_dim + 1, dtype=_at_least_float32(scores)).type_as(scores)
    return (weights.unsqueeze(-1) * hidden).sum(channel_dim), weights


def multi_channel_rnn(
    recurrence: Recurrence,
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    parameters: MultiChannelParameters,
    cell: str,
    connection: str,
    need_channel_attention: bool = False,
) -> MultiChannelOutput:
    """See :func:`fairseq_plugins.kernels.multi_channel_rnn`."""
    steps, batch_size, _ = x.shape
    lags, channels = state.history.shape[1:3]
    gates, candidate_bias = input_gates(x, parameters, cell)
    hidden, memories = recurrence(
        gates,
        candidate_bias,
        state.history.permute(1, 2, 0, 3),
        state.memory.transpose(0, 1),
        parameters.weight_hh,
        parameters.weight_connection,
        cell,
        connection,
    )
    output, weights = attend(hidden[lags:], x, parameters, channel_dim=-3)

    if lengths is None:
        newest_first = [hidden[steps + lags - j] for j in range(1, lags + 1)]
        history = torch.stack(newest_first).permute(2, 0, 1, 3)
        final = MultiChannelState(history, memories[steps].transpose(0, 1), state.time + steps)
    else:
        rows = torch.arange(batch_size, device=x.device)
        history = torch.stack([hidden[lengths + lags - j, :, rows] for j in range(1, lags + 1)], dim=1)
        final = MultiChannelState(history, memories[lengths, :, rows], state.time + lengths)
        padding = (torch.arange(steps, device=x.device).unsqueeze(1) >= lengths).unsqueeze(-1)
        output = output.masked_fill(padding, 0)
    if not need_channel_attention or weights is None:
        return MultiChannelOutput(output, final, None)

    by_channel = weights.transpose(1, 2).gather(-1, channel_slots(state.time, steps, channels))
    if lengths is not None:
        by_channel = by_channel.masked_fill(padding, 0)
    return MultiChannelOutput(output, final, by_channel)


def multi_channel_rnn_step(
    x: Tensor, state: MultiChannelState, parameters: MultiChannelParameters, cell: str, connection: str
) -> tuple[Tensor, MultiChannelState]:
    """A step of :func:`fairseq_plugins.kernels.multi_channel_stepper`."""
    history, memory, time = state
    lags, channels = history.shape[1:3]
    gates, candidate_bias = input_gates(x, parameters, cell)
    by_lag = [history[:, j - 1, : channels - slot_shift(j, channels, lags)] for j in range(1, lags + 1)]
    hidden, memory = cell_step(
        gates.unsqueeze(1),
        candidate_bias,
        by_lag,
        memory,
        parameters.weight_hh,
        parameters.weight_connection,
        cell,
        connection,
        slot_dim=1,
    )
    output, _ = attend(hidden, x, parameters, channel_dim=-2)
    next_hidden = hidden.roll(1, dims=1)
    history = torch.cat([next_hidden.unsqueeze(1), history[:, :-1]], dim=1)
    return output, MultiChannelState(history, memory.roll(1, dims=1), time + 1)


def _at_least_float32(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)
