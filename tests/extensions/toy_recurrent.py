"""A recurrent layer of a user's own in one file: h(t) = leak h(t - 1) + (1 - leak) tanh(W x(t))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fairseq_plugins.modules import LayerSizes, RecurrentNetwork, RecurrentOutput, option, register_recurrent_kind


@dataclass(frozen=True)
class ToyOptions:
    leak: float = option(0.5, "share of the output that stays from step to step", minimum=0)


class ToyState(NamedTuple):
    hidden: Tensor  # (B, H)


class ToyRNN(RecurrentNetwork):
    has_cell_state = False

    def __init__(self, input_size: int, hidden_size: int, leak: float) -> None:
        super().__init__()
        self.input_size, self.output_size, self.leak = input_size, hidden_size, leak
        self.linear = nn.Linear(input_size, hidden_size)
        self.register_buffer("epochs", torch.zeros((), dtype=torch.long))

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: ToyState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        state = state or self.initial_state(x.size(1))
        outputs, final = [], state.hidden
        for t, x_t in enumerate(x.unbind(0)):
            output, state = self.step(x_t, state)
            real = output.new_ones(len(output), 1) if lengths is None else (t < lengths).unsqueeze(1).type_as(output)
            outputs.append(output * real)
            final = torch.where(real.bool(), output, final)
        return RecurrentOutput(torch.stack(outputs), ToyState(final), {})

    def recurrent_parameters(self) -> list[str]:
        return []

    def step(self, x: Tensor, state: ToyState) -> tuple[Tensor, ToyState]:
        hidden = torch.lerp(torch.tanh(self.linear(x)), state.hidden, self.leak)
        return hidden, ToyState(hidden)

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> ToyState:
        return ToyState(self.linear.weight.new_zeros(batch_size, self.output_size) if h0 is None else h0)

    def on_epoch(self, epoch: int) -> None:
        self.epochs.fill_(epoch)


@register_recurrent_kind("toy", ToyOptions, "leaky integrator")
def make(options: ToyOptions, sizes: LayerSizes) -> ToyRNN:
    return ToyRNN(sizes.input_size, sizes.hidden_size, options.leak)
