"""``torch.nn.LSTM``, ``GRU`` and ``RNN`` behind the contract of recurrent networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ...kernels.checks import checked_start
from . import torch_layers
from .contract import RecurrentNetwork, RecurrentOutput, Step
from .registry import LayerSizes, register_recurrent_kind


class ConventionalState(NamedTuple):
    """The state of one layer; ``cell_state`` has width 0 where the cell has none."""

    hidden: Tensor  # (B, H)
    cell_state: Tensor  # (B, H) for the LSTM, else (B, 0)


class ConventionalRNN(RecurrentNetwork[ConventionalState]):
    """One layer of ``torch.nn.LSTM``, ``GRU`` or ``RNN`` (tanh), in one direction.

    Args:
        input_size: D.
        hidden_size: H.
        cell: ``lstm``, ``gru`` or ``rnn``.

    Raises:
        ValueError: an unknown cell, or a size that torch's layer does not take.
    """

    has_fixed_steps = True

    def __init__(self, input_size: int, hidden_size: int, cell: str = "lstm") -> None:
        super().__init__()
        if cell not in torch_layers.CELLS:
            raise ValueError(f"unknown cell {cell!r}; choose from {', '.join(torch_layers.CELLS)}")
        self.input_size = input_size
        self.hidden_size = self.output_size = hidden_size
        self.cell = cell
        self.has_cell_state = cell == "lstm"
        self.rnn = torch_layers.CELLS[cell](input_size, hidden_size)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: ConventionalState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        x, lengths = self.check_sequence(x, lengths, state)
        if state is None:
            state = self.initial_state(x.size(1))
        if not x.size(0):
            return self.unread(x, state)
        output, *last = torch_layers.run(self.rnn, x, lengths, *state)
        return RecurrentOutput(output, ConventionalState(*last), {})

    def recurrent_parameters(self) -> list[str]:
        return ["rnn.weight_hh_l0"]

    def step(self, x: Tensor, state: ConventionalState) -> tuple[Tensor, ConventionalState]:
        self.step_check()(x, state)
        hidden, cell_state = torch_layers.step(self.rnn, x, *state)
        return hidden, ConventionalState(hidden, cell_state)

    def stepper(self, batch_size: int) -> Step[ConventionalState]:
        check, step = self.step_check(), torch_layers.stepper(self.rnn, batch_size)

        def one_step(x: Tensor, state: ConventionalState) -> tuple[Tensor, ConventionalState]:
            check(x, state)
            hidden, cell_state = step(x, *state)
            return hidden, ConventionalState(hidden, cell_state)

        return one_step

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> ConventionalState:
        like = self.rnn.weight_hh_l0
        h0 = checked_start("h0", h0, batch_size, self.hidden_size, like)
        if self.has_cell_state:
            c0 = checked_start("c0", c0, batch_size, self.hidden_size, like)
        else:
            c0 = like.new_zeros(batch_size, 0)
        return ConventionalState(h0, c0)


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
