"""MC-RNN and HO-RNN as the papers print them: loops over sentences, time steps t, channels k and predecessors j.

Slow, and right by inspection; the fast backends are tested against it.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from .specification import (
    MultiChannelLayer,
    MultiChannelOutput,
    MultiChannelState,
    Stepper,
    in_degree,
)


def refuses(layer: MultiChannelLayer, rows: int) -> str | None:
    """It takes everything."""
    return None


def multi_channel_rnn(
    layer: MultiChannelLayer,
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    need_details: bool = False,
) -> MultiChannelOutput:
    """See :func:`fairseq_plugins.kernels.multi_channel_rnn`. Eq. 1 to 6 of the paper."""
    steps, batch_size, _ = x.shape
    has_details = need_details and layer.specification.has_attention
    if not steps * batch_size:
        output = x[..., :1].expand(-1, -1, state.history.size(-1))
        attention = x.new_zeros(steps, batch_size, layer.specification.channels)
        return MultiChannelOutput(output, state, {"channel_attention": attention} if has_details else {})
    sentence = _staggered_sentence if layer.specification.is_staggered else _higher_order_sentence
    rows = []
    for b in range(batch_size):
        length = steps if lengths is None else int(lengths[b])
        row_state = MultiChannelState(state.history[b], state.cell_state[b], state.time[b])
        rows.append(sentence(layer, x[:length, b], row_state, steps))
    outputs, histories, cell_states, times, attentions = zip(*rows, strict=True)
    return MultiChannelOutput(
        torch.stack(outputs, dim=1),
        MultiChannelState(torch.stack(histories), torch.stack(cell_states), torch.stack(times)),
        {"channel_attention": torch.stack(attentions, dim=1)} if has_details else {},
    )


def stepper(layer: MultiChannelLayer, batch_size: int) -> Stepper:
    """See :func:`fairseq_plugins.kernels.multi_channel_stepper`."""
    return functools.partial(_step, layer)


def _step(layer: MultiChannelLayer, x: Tensor, state: MultiChannelState) -> tuple[Tensor, MultiChannelState]:
    output, state, _ = multi_channel_rnn(layer, x.unsqueeze(0), None, state)
    return output.squeeze(0), state


def _staggered_sentence(
    layer: MultiChannelLayer, x: Tensor, state: MultiChannelState, padded_length: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """One sentence (T, D): output (padded_length, H), history, cell state, time and attention (padded_length, C)."""
    w = layer.parameters.weight_connection
    channels, _, hidden_size = w.shape
    start = int(state.time)
    zero = x.new_zeros(hidden_size)

    h = {}  # h[t, k]
    c = {}  # c[t, k]
    for k in range(1, channels + 1):
        for j in range(1, channels + 1):
            slot = in_degree(start - j + 2, k, channels) - 1
            h[start - j + 1, k] = state.history[j - 1, slot]
        c[start, k] = state.cell_state[in_degree(start + 1, k, channels) - 1]

    output = [x.new_zeros(hidden_size)] * padded_length
    attention = [x.new_zeros(channels)] * padded_length
    for t in range(start + 1, start + len(x) + 1):
        x_t = x[t - start - 1]
        for k in range(1, channels + 1):
            m = in_degree(t, k, channels)  # Eq. 1
            s = sum((w[j - 1] @ h[t - j, k] for j in range(1, m + 1)), x.new_zeros(w.size(1))) / m  # Eq. 2
            mean = sum((h[t - j, k] for j in range(1, m + 1)), zero) / m
            h[t, k], c[t, k] = _cell(layer, x_t, s, mean, c[t - 1, k])  # Eq. 3
        outputs = [h[t, k] for k in range(1, channels + 1)]
        output[t - start - 1], attention[t - start - 1] = _attended(layer, x_t, outputs)

    end = start + len(x)
    by_slot = {
        (j, in_degree(end - j + 2, k, channels) - 1): h[end - j + 1, k]
        for k in range(1, channels + 1)
        for j in range(1, channels + 1)
    }
    history = torch.stack([torch.stack([by_slot[j, i] for i in range(channels)]) for j in range(1, channels + 1)])
    cell_state_by_slot = {in_degree(end + 1, k, channels) - 1: c[end, k] for k in range(1, channels + 1)}
    cell_state = torch.stack([cell_state_by_slot[i] for i in range(channels)])
    return torch.stack(output), history, cell_state, state.time + len(x), torch.stack(attention)


def _higher_order_sentence(
    layer: MultiChannelLayer, x: Tensor, state: MultiChannelState, padded_length: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """As :func:`_staggered_sentence` for HO-RNN (Soltani and Jiang, 2016): every step reads all lags."""
    w, lags = layer.parameters.weight_connection, layer.specification.lags
    longest = layer.specification.longest_lag
    h = {1 - j: state.history[j - 1, 0] for j in range(1, longest + 1)}  # h[t], t = 0 before the first step here
    c = state.cell_state[0]
    output = [x.new_zeros(w.size(-1))] * padded_length
    attention = [x.new_zeros(1)] * padded_length
    for t, x_t in enumerate(x, start=1):
        s = sum((w_j @ h[t - lag] for w_j, lag in zip(w, lags, strict=True)), x.new_zeros(w.size(1)))
        mean = sum((h[t - lag] for lag in lags), x.new_zeros(w.size(-1))) / len(lags)
        h[t], c = _cell(layer, x_t, s, mean, c)
        output[t - 1], attention[t - 1] = _attended(layer, x_t, [h[t]])
    history = torch.stack([h[len(x) - j + 1] for j in range(1, longest + 1)]).unsqueeze(1)
    return torch.stack(output), history, c.unsqueeze(0), state.time + len(x), torch.stack(attention)


def _attended(layer: MultiChannelLayer, x: Tensor, h: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Eq. 4 to 6 for the outputs of all channels: the output and alpha. Without attention that of the one channel."""
    v, r = layer.parameters.attention_v, layer.parameters.attention_r
    if v is None or r is None:
        return h[0], x.new_ones(1)
    e = torch.stack([r @ torch.tanh(v @ torch.cat([h_k, x])) for h_k in h])  # Eq. 6
    alpha = torch.softmax(e, dim=0)  # Eq. 5
    return sum(alpha_k * h_k for alpha_k, h_k in zip(alpha, h, strict=True)), alpha


def _cell(layer: MultiChannelLayer, x: Tensor, s: Tensor, mean: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The function f of Eq. 3. ``s`` is the temporal input or, for "gate", the sum that enters the gates."""
    specification, parameters = layer
    from_input = parameters.weight_ih @ x + parameters.bias_ih
    if parameters.weight_hh is not None:
        from_history = parameters.weight_hh @ s + parameters.bias_hh
        interpolated = s
    else:
        from_history = s + parameters.bias_hh
        interpolated = mean

    if specification.cell == "lstm":
        i, f, g, o = (from_input + from_history).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
    if specification.cell == "gru":
        r_x, z_x, n_x = from_input.chunk(3)
        r_h, z_h, n_h = from_history.chunk(3)
        r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
        n = torch.tanh(n_x + r * n_h)
        return (1 - z) * n + z * interpolated, c
    return torch.tanh(from_input + from_history), c
