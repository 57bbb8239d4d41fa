"""MC-RNN and HO-RNN as the papers print them: loops over sentences, time steps t, channels k and predecessors j.

Slow, and right by inspection; the fast backends are tested against it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .interface import MultiChannelOutput, MultiChannelParameters, MultiChannelState, in_degree


def multi_channel_rnn(
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    parameters: MultiChannelParameters,
    cell: str,
    connection: str,
    need_channel_attention: bool = False,
) -> MultiChannelOutput:
    """See :func:`fairseq_plugins.kernels.multi_channel_rnn`. Eq. 1 to 6 of the paper."""
    steps, batch_size, _ = x.shape
    rows = []
    for b in range(batch_size):
        length = steps if lengths is None else int(lengths[b])
        row_state = MultiChannelState(state.history[b], state.memory[b], state.time[b])
        sentence = _higher_order_sentence if parameters.attention_v is None else _sentence
        rows.append(sentence(x[:length, b], row_state, parameters, cell, connection, steps))
    outputs, histories, memories, times, attentions = zip(*rows, strict=True)
    return MultiChannelOutput(
        torch.stack(outputs, dim=1),
        MultiChannelState(torch.stack(histories), torch.stack(memories), torch.stack(times)),
        torch.stack(attentions, dim=1) if need_channel_attention and parameters.attention_v is not None else None,
    )


def multi_channel_rnn_step(
    x: Tensor, state: MultiChannelState, parameters: MultiChannelParameters, cell: str, connection: str
) -> tuple[Tensor, MultiChannelState]:
    """A step of :func:`fairseq_plugins.kernels.multi_channel_stepper`."""
    output, state, _ = multi_channel_rnn(x.unsqueeze(0), None, state, parameters, cell, connection)
    return output.squeeze(0), state


def _sentence(
    x: Tensor,
    state: MultiChannelState,
    parameters: MultiChannelParameters,
    cell: str,
    connection: str,
    padded_length: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """One sentence (T, D): output (padded_length, H), history, memory, time and attention (padded_length, C)."""
    w = parameters.weight_connection
    channels, _, hidden_size = w.shape
    start = int(state.time)
    zero = x.new_zeros(hidden_size)

    h = {}  # h[t, k]
    c = {}  # c[t, k]
    for k in range(1, channels + 1):
        for j in range(1, channels + 1):
            slot = in_degree(start - j + 2, k, channels) - 1
            h[start - j + 1, k] = state.history[j - 1, slot]
        c[start, k] = state.memory[in_degree(start + 1, k, channels) - 1]

    output = [x.new_zeros(hidden_size)] * padded_length
    attention = [x.new_zeros(channels)] * padded_length
    for t in range(start + 1, start + len(x) + 1):
        x_t = x[t - start - 1]
        for k in range(1, channels + 1):
            m = in_degree(t, k, channels)  # Eq. 1
            s = sum(w[j - 1] @ h[t - j, k] for j in range(1, m + 1)) / m  # Eq. 2
            mean = sum((h[t - j, k] for j in range(1, m + 1)), zero) / m
            h[t, k], c[t, k] = _cell(x_t, s, mean, c[t - 1, k], parameters, cell, connection)  # Eq. 3
        e = torch.stack([_score(h[t, k], x_t, parameters) for k in range(1, channels + 1)])
        alpha = torch.softmax(e, dim=0)  # Eq. 5
        output[t - start - 1] = sum(alpha[k - 1] * h[t, k] for k in range(1, channels + 1))  # Eq. 4
        attention[t - start - 1] = alpha

    end = start + len(x)
    by_slot = {
        (j, in_degree(end - j + 2, k, channels) - 1): h[end - j + 1, k]
        for k in range(1, channels + 1)
        for j in range(1, channels + 1)
    }
    history = torch.stack([torch.stack([by_slot[j, i] for i in range(channels)]) for j in range(1, channels + 1)])
    memory_by_slot = {in_degree(end + 1, k, channels) - 1: c[end, k] for k in range(1, channels + 1)}
    memory = torch.stack([memory_by_slot[i] for i in range(channels)])
    return torch.stack(output), history, memory, state.time + len(x), torch.stack(attention)


def _higher_order_sentence(
    x: Tensor,
    state: MultiChannelState,
    parameters: MultiChannelParameters,
    cell: str,
    connection: str,
    padded_length: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """As :func:`_sentence` for HO-RNN (Soltani and Jiang, 2016): every step reads the last K outputs; no attention."""
    w = parameters.weight_connection
    order = w.size(0)
    h = {1 - j: state.history[j - 1, 0] for j in range(1, order + 1)}  # h[t], t = 0 before the first step here
    c = state.memory[0]
    output = [x.new_zeros(w.size(-1))] * padded_length
    for t, x_t in enumerate(x, start=1):
        s = sum(w[j - 1] @ h[t - j] for j in range(1, order + 1))
        mean = sum(h[t - j] for j in range(1, order + 1)) / order
        h[t], c = _cell(x_t, s, mean, c, parameters, cell, connection)
        output[t - 1] = h[t]
    history = torch.stack([h[len(x) - j + 1] for j in range(1, order + 1)]).unsqueeze(1)
    attention = x.new_zeros(padded_length, 0)
    return torch.stack(output), history, c.unsqueeze(0), state.time + len(x), attention


def _score(h: Tensor, x: Tensor, parameters: MultiChannelParameters) -> Tensor:
    """e(t, k) of Eq. 6."""
    return parameters.attention_r @ torch.tanh(parameters.attention_v @ torch.cat([h, x]))


def _cell(
    x: Tensor, s: Tensor, mean: Tensor, c: Tensor, parameters: MultiChannelParameters, cell: str, connection: str
) -> tuple[Tensor, Tensor]:
    """The function f of Eq. 3. ``s`` is the temporal input or, for "gate", the sum that enters the gates."""
    from_input = parameters.weight_ih @ x + parameters.bias_ih
    if connection == "state":
        from_history = parameters.weight_hh @ s + parameters.bias_hh
        interpolated = s
    else:
        from_history = s + parameters.bias_hh
        interpolated = mean

    if cell == "lstm":
        i, f, g, o = (from_input + from_history).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
    if cell == "gru":
        r_x, z_x, n_x = from_input.chunk(3)
        r_h, z_h, n_h = from_history.chunk(3)
        r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
        n = torch.tanh(n_x + r * n_h)
        return (1 - z) * n + z * interpolated, c
    return torch.tanh(from_input + from_history), c
