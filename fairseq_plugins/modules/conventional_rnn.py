"""``torch.nn.LSTM``, ``GRU`` and ``RNN`` behind the interface of a recurrent layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .. import kernels
from .recurrent import LayerOutput, RecurrentLayer

_CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
_STEPS = {"lstm": torch.lstm_cell, "gru": torch.gru_cell, "rnn": torch.rnn_tanh_cell}

# Sigmoid of it is 1 to the last bit, sigmoid of its negative 0, in every precision, float16 included.
_SATURATED = 1e4


class ConventionalState(NamedTuple):
    """The state of one layer; ``memory`` has width 0 where the cell has none."""

    hidden: Tensor  # (B, H)
    memory: Tensor  # (B, H) for the LSTM, else (B, 0)


class ConventionalRNN(RecurrentLayer):
    """One layer of ``torch.nn.LSTM``, ``GRU`` or ``RNN`` (tanh), chosen by ``cell``, in one direction.

    Ragged batches are not packed: packing needs the lengths on the CPU, which would stall a GPU in every training step.
    """

    def __init__(self, input_size: int, hidden_size: int, cell: str = "lstm") -> None:
        super().__init__()
        if cell not in _CELLS:
            raise ValueError(f"unknown cell {cell!r}; choose from {', '.join(_CELLS)}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.cell = cell
        self.has_memory = cell == "lstm"
        self.rnn = _CELLS[cell](input_size, hidden_size)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: ConventionalState | None = None,
        need_channel_attention: bool = False,
    ) -> LayerOutput:
        steps, batch_size, _ = x.shape
        if state is None:
            state = self.initial_state(batch_size)
        padding = None if lengths is None else torch.arange(steps, device=x.device).unsqueeze(1) >= lengths
        hidden, memory = state.hidden.unsqueeze(0), state.memory.unsqueeze(0)
        if not self.has_memory:
            output, last_hidden = self.rnn(x, hidden)
            last_memory = memory
        elif padding is None:
            output, (last_hidden, last_memory) = self.rnn(x, (hidden, memory))
        else:
            output, last_memory = self._lstm_that_keeps_memory(x, padding, hidden, memory)

        if padding is None:
            return LayerOutput(output, ConventionalState(last_hidden.squeeze(0), last_memory.squeeze(0)), None)
        rows = torch.arange(batch_size, device=x.device)
        last = torch.cat([hidden, output])[lengths, rows]
        output = output.masked_fill(padding.unsqueeze(-1), 0)
        return LayerOutput(output, ConventionalState(last, last_memory.squeeze(0)), None)

    def step(self, x: Tensor, state: ConventionalState) -> tuple[Tensor, ConventionalState]:
        rnn = self.rnn
        weights = (rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0)
        if self.has_memory:
            hidden, memory = _STEPS[self.cell](x, tuple(state), *weights)
            return hidden, ConventionalState(hidden, memory)
        hidden = _STEPS[self.cell](x, state.hidden, *weights)
        return hidden, ConventionalState(hidden, state.memory)

    def stepper(self, batch_size: int) -> Callable[[Tensor, ConventionalState], tuple[Tensor, ConventionalState]]:
        rnn = self.rnn
        weights = (rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0)
        step = kernels.conventional_stepper(*weights, self.cell, batch_size)
        if step is None:
            return self.step

        # Only channels need the time.
        time = rnn.weight_hh_l0.new_zeros((), dtype=torch.long)

        def fused_step(x: Tensor, state: ConventionalState) -> tuple[Tensor, ConventionalState]:
            whole = kernels.MultiChannelState(state.hidden[:, None, None], state.memory[:, None], time)
            output, (_, memory, _) = step(x, whole)
            return output, ConventionalState(output, memory.squeeze(1))

        return fused_step

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> ConventionalState:
        like = self.rnn.weight_hh_l0
        if h0 is None:
            h0 = like.new_zeros(batch_size, self.hidden_size)
        if not self.has_memory:
            c0 = like.new_zeros(batch_size, 0)
        elif c0 is None:
            c0 = like.new_zeros(batch_size, self.hidden_size)
        return ConventionalState(h0, c0)

    def _lstm_that_keeps_memory(
        self, x: Tensor, padding: Tensor, hidden: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The LSTM with c frozen at padding, so that the last c is each row's own at its last real token.

        One more input feature, 1 at padding, closes the input gate and opens the forget gate there; elsewhere it is 0.
        """
        rnn = self.rnn
        flag = x.new_zeros(4, self.hidden_size)
        flag[0], flag[1] = -_SATURATED, _SATURATED
        weight_ih = torch.cat([rnn.weight_ih_l0, flag.view(-1, 1)], dim=1)
        x = torch.cat([x, padding.unsqueeze(-1).type_as(x)], dim=-1)
        weights = [weight_ih, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0]
        output, _, last_memory = torch.lstm(x, (hidden, memory), weights, True, 1, 0.0, self.training, False, False)
        return output, last_memory
