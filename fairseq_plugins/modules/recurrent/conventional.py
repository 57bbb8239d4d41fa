"""``torch.nn.LSTM``, ``GRU`` and ``RNN`` behind the contract of recurrent networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ... import kernels
from .contract import RecurrentNetwork, RecurrentOutput, Step
from .registry import LayerSizes, register_recurrent_kind

_CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
_STEPS = {"lstm": torch.lstm_cell, "gru": torch.gru_cell, "rnn": torch.rnn_tanh_cell}

# Sigmoid of it is 1 to the last bit, sigmoid of its negative 0, in every precision, float16 included.
_SATURATED = 1e4


class ConventionalState(NamedTuple):
    """The state of one layer; ``cell_state`` has width 0 where the cell has none."""

    hidden: Tensor  # (B, H)
    cell_state: Tensor  # (B, H) for the LSTM, else (B, 0)


class ConventionalRNN(RecurrentNetwork):
    """One layer of ``torch.nn.LSTM``, ``GRU`` or ``RNN`` (tanh), chosen by ``cell``, in one direction.

    Ragged batches are not packed: packing needs the lengths on the CPU, which would stall a GPU in every training step.
    """

    def __init__(self, input_size: int, hidden_size: int, cell: str = "lstm") -> None:
        super().__init__()
        if cell not in _CELLS:
            raise ValueError(f"unknown cell {cell!r}; choose from {', '.join(_CELLS)}")
        self.input_size = input_size
        self.hidden_size = self.output_size = hidden_size
        self.cell = cell
        self.has_cell_state = cell == "lstm"
        self.rnn = _CELLS[cell](input_size, hidden_size)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: ConventionalState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        steps, batch_size, _ = x.shape
        if state is None:
            state = self.initial_state(batch_size)
        padding = None if lengths is None else torch.arange(steps, device=x.device).unsqueeze(1) >= lengths
        hidden, cell_state = state.hidden.unsqueeze(0), state.cell_state.unsqueeze(0)
        if not self.has_cell_state:
            output, last_hidden = self.rnn(x, hidden)
            last_cell_state = cell_state
        elif padding is None:
            output, (last_hidden, last_cell_state) = self.rnn(x, (hidden, cell_state))
        else:
            output, last_cell_state = self._lstm_that_keeps_its_cell_state(x, padding, hidden, cell_state)

        if padding is None:
            return RecurrentOutput(output, ConventionalState(last_hidden.squeeze(0), last_cell_state.squeeze(0)), {})
        rows = torch.arange(batch_size, device=x.device)
        last = torch.cat([hidden, output])[lengths, rows]
        output = output.masked_fill(padding.unsqueeze(-1), 0)
        return RecurrentOutput(output, ConventionalState(last, last_cell_state.squeeze(0)), {})

    def recurrent_parameters(self) -> list[str]:
        return ["rnn.weight_hh_l0"]

    def step(self, x: Tensor, state: ConventionalState) -> tuple[Tensor, ConventionalState]:
        rnn = self.rnn
        weights = (rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0)
        if self.has_cell_state:
            hidden, cell_state = _STEPS[self.cell](x, tuple(state), *weights)
            return hidden, ConventionalState(hidden, cell_state)
        hidden = _STEPS[self.cell](x, state.hidden, *weights)
        return hidden, ConventionalState(hidden, state.cell_state)

    def stepper(self, batch_size: int) -> Step:
        rnn = self.rnn
        weights = (rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0)
        step = kernels.conventional_stepper(*weights, self.cell, batch_size)
        if step is None:
            return self.step

        # Only channels need the time.
        time = rnn.weight_hh_l0.new_zeros((), dtype=torch.long)

        def fused_step(x: Tensor, state: ConventionalState) -> tuple[Tensor, ConventionalState]:
            whole = kernels.MultiChannelState(state.hidden[:, None, None], state.cell_state[:, None], time)
            output, (_, cell_state, _) = step(x, whole)
            return output, ConventionalState(output, cell_state.squeeze(1))

        return fused_step

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> ConventionalState:
        like = self.rnn.weight_hh_l0
        if h0 is None:
            h0 = like.new_zeros(batch_size, self.hidden_size)
        if not self.has_cell_state:
            c0 = like.new_zeros(batch_size, 0)
        elif c0 is None:
            c0 = like.new_zeros(batch_size, self.hidden_size)
        return ConventionalState(h0, c0)

    def _lstm_that_keeps_its_cell_state(
        self, x: Tensor, padding: Tensor, hidden: Tensor, cell_state: Tensor
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
        output, _, last = torch.lstm(x, (hidden, cell_state), weights, True, 1, 0.0, self.training, False, False)
        return output, last


@dataclass(frozen=True)
class ConventionalOptions:
    """Nothing can be asked for."""


@register_recurrent_kind("lstm", ConventionalOptions, "torch.nn.LSTM")
def _lstm(options: ConventionalOptions, sizes: LayerSizes) -> ConventionalRNN:
    return ConventionalRNN(sizes.input_size, sizes.hidden_size, "lstm")


@register_recurrent_kind("gru", ConventionalOptions, "torch.nn.GRU")
def _gru(options: ConventionalOptions, sizes: LayerSizes) -> ConventionalRNN:
    return ConventionalRNN(sizes.input_size, sizes.hidden_size, "gru")


@register_recurrent_kind("rnn", ConventionalOptions, "torch.nn.RNN with tanh")
def _rnn(options: ConventionalOptions, sizes: LayerSizes) -> ConventionalRNN:
    return ConventionalRNN(sizes.input_size, sizes.hidden_size, "rnn")
