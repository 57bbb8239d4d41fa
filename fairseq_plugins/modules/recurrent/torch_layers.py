"""One layer of ``torch.nn.LSTM``, ``GRU`` or ``RNN`` (tanh) over ragged batches, and step by step.

Ragged batches are not packed: packing needs the lengths on the CPU, which would stall a GPU in every training step, and
refuses rows of no tokens. One more input feature, 1 at padding, closes the gates there instead; elsewhere it is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ... import kernels
from ...kernels.padding import padding_mask

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
_NAMES = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn"}
_RUNS: dict[str, Callable[..., Any]] = {"lstm": torch.lstm, "gru": torch.gru, "rnn": torch.rnn_tanh}
_STEPS: dict[str, Callable[..., Any]] = {"lstm": torch.lstm_cell, "gru": torch.gru_cell, "rnn": torch.rnn_tanh_cell}

# Sigmoid of it is 1 to the last bit, sigmoid of its negative 0, in every precision, float16 included.
_SATURATED = 1e4
# The gates, by number, that keep a state as it was: input and forget gate of the LSTM, update gate of the GRU.
_CLOSED = {"lstm": {0: -_SATURATED, 1: _SATURATED}, "gru": {1: _SATURATED}}

TorchStep = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""One time step: x (B, D), h (B, H), c (B, H or 0) -> the next h and c."""


def cell_of(rnn: nn.RNNBase) -> str:
    """``lstm``, ``gru`` or ``rnn``."""
    return _NAMES[rnn.mode]


def run(
    rnn: nn.RNNBase, x: Tensor, lengths: Tensor | None, hidden: Tensor, cell_state: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs a layer in one direction.

    Args:
        rnn: a layer of one direction, time first.
        x: (T, B, D), right-padded, T at least 1.
        lengths: (B,) real tokens of each row, 0 ... T; None if there is no padding.
        hidden: (B, H), h before the first token.
        cell_state: (B, H), c before the first token; (B, 0) where the cell has none.

    Returns:
        the output (T, B, H), zero at padding, and each row's own h and c at its last real token.
    """
    cell = cell_of(rnn)
    weight_ih, weight_hh, bias_ih, bias_hh = _weights(rnn)
    fused = kernels.conventional_rnn(weight_ih, weight_hh, bias_ih, bias_hh, cell, x, lengths, hidden, cell_state)
    if fused is not None:
        return fused
    has_cell_state = cell == "lstm"
    padding = None if lengths is None else padding_mask(lengths, x.size(0))
    # Of cells without a cell state, the last h is found among the outputs.
    output, last_hidden, last_cell_state = _run(
        rnn, x, padding if has_cell_state else None, hidden.unsqueeze(0), cell_state.unsqueeze(0)
    )
    if padding is None:
        return output, last_hidden.squeeze(0), last_cell_state.squeeze(0)
    rows = torch.arange(x.size(1), device=x.device)
    last_hidden = torch.cat([hidden.unsqueeze(0), output])[lengths, rows]
    return output.masked_fill(padding.unsqueeze(-1), 0), last_hidden, last_cell_state.squeeze(0)


def run_both_directions(rnn: nn.RNNBase, x: Tensor, lengths: Tensor | None) -> Tensor:
    """Runs a bidirectional LSTM or GRU from zeros.

    Backwards it goes through the padding first, whose closed gates leave the zeros for each row's last token.

    Args:
        rnn: a layer of two directions, time first.
        x: (T, B, D), right-padded, T at least 1.
        lengths: as :func:`run` takes them.

    Returns:
        (T, B, 2 * H), forwards, then backwards; zero at padding.
    """
    zeros = x.new_zeros(2, x.size(1), rnn.hidden_size)
    padding = None if lengths is None else padding_mask(lengths, x.size(0))
    output, _, _ = _run(rnn, x, padding, zeros, zeros)
    return output if padding is None else output.masked_fill(padding.unsqueeze(-1), 0)


def stepper(rnn: nn.RNNBase, batch_size: int) -> TorchStep:
    """Steps of a layer of one direction, of about ``batch_size`` rows, on the fastest kernel that there is.

    The parameters must not change while it is in use.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = _weights(rnn)
    fused = kernels.conventional_stepper(weight_ih, weight_hh, bias_ih, bias_hh, cell_of(rnn), batch_size)
    if fused is None:
        return lambda x, hidden, cell_state: step(rnn, x, hidden, cell_state)

    # Only channels need the time.
    time = weight_ih.new_zeros((), dtype=torch.long)

    def fused_step(x: Tensor, hidden: Tensor, cell_state: Tensor) -> tuple[Tensor, Tensor]:
        state = kernels.MultiChannelState(hidden[:, None, None], cell_state[:, None], time)
        output, (_, next_cell_state, _) = fused(x, state)
        return output, next_cell_state.squeeze(1)

    return fused_step


def step(rnn: nn.RNNBase, x: Tensor, hidden: Tensor, cell_state: Tensor) -> tuple[Tensor, Tensor]:
    """One time step of a layer of one direction, as torch's own cells do it; see :data:`TorchStep`."""
    cell = cell_of(rnn)
    if cell == "lstm":
        hidden, cell_state = _STEPS[cell](x, (hidden, cell_state), *_weights(rnn))
        return hidden, cell_state
    return _STEPS[cell](x, hidden, *_weights(rnn)), cell_state


def _weights(rnn: nn.RNNBase) -> list[Tensor]:
    # By name: DropConnect puts tensors in the place of parameters, of which the list that torch keeps does not know.
    return [getattr(rnn, name) for name in rnn._flat_weights_names]


def _run(
    rnn: nn.RNNBase, x: Tensor, padding: Tensor | None, hidden: Tensor, cell_state: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The output and the last states, directions first; with ``padding``, states do not change where it is True."""
    cell, weights = cell_of(rnn), _weights(rnn)
    if padding is not None:
        closed = weights[0].new_zeros(weights[0].size(0), 1)
        for gate, value in _CLOSED[cell].items():
            closed[gate * rnn.hidden_size : (gate + 1) * rnn.hidden_size] = value
        # Each direction has four tensors, weight_ih first.
        weights = [torch.cat([w, closed], dim=1) if i % 4 == 0 else w for i, w in enumerate(weights)]
        x = torch.cat([x, padding.unsqueeze(-1).type_as(x)], dim=-1)
    options = (True, 1, 0.0, rnn.training, rnn.bidirectional, False)
    # cuDNN takes no other; a carried state may be a view of one with more parts.
    hidden, cell_state = hidden.contiguous(), cell_state.contiguous()
    if cell == "lstm":
        output, hidden, cell_state = _RUNS[cell](x, (hidden, cell_state), weights, *options)
    else:
        output, hidden = _RUNS[cell](x, hidden, weights, *options)
    return output, hidden, cell_state
