"""Depth and two directions for any recurrent layer, and the table of the kinds of layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .conventional_rnn import ConventionalRNN
from .higher_order_rnn import HigherOrderRNN
from .multi_channel_rnn import MultiChannelRNN
from .recurrent import RecurrentLayer, RecurrentState


@dataclass(frozen=True)
class LayerOptions:
    """What the kinds of layers can be asked for beyond their sizes; each kind reads what concerns it."""

    channels: int = 3
    order: int = 3
    cell: str = "lstm"
    connection: str = "state"
    connection_init: str = "identity"


RECURRENT_LAYERS: dict[str, Callable[[int, int, LayerOptions], RecurrentLayer]] = {
    "lstm": lambda d, h, options: ConventionalRNN(d, h, "lstm"),
    "gru": lambda d, h, options: ConventionalRNN(d, h, "gru"),
    "rnn": lambda d, h, options: ConventionalRNN(d, h, "rnn"),
    "mc_rnn": lambda d, h, options: MultiChannelRNN(
        d, h, options.channels, options.cell, options.connection, options.connection_init
    ),
    "ho_rnn": lambda d, h, options: HigherOrderRNN(d, h, options.order, options.cell, options.connection),
}
"""Makes a layer of each kind from input size, hidden size and options."""


class StackOutput(NamedTuple):
    """What a stack returns for a sequence; with two directions, widths are 2H: forwards, then backwards."""

    output: Tensor  # (T, B, H or 2H) of the top layer
    layer_outputs: tuple[Tensor, ...]  # of each layer, before dropout
    states: tuple[RecurrentState, ...]  # of each layer; with two directions, forwards and backwards in turn
    channel_attention: tuple[Tensor, ...] | None  # (T, B, C) in the order of ``states``


class RecurrentStack(nn.Module):
    """Layers of one kind on top of each other.

    Args:
        kind: a key of :data:`RECURRENT_LAYERS`.
        bidirectional: every layer reads the sentence in both directions, and upper layers read both outputs.
        dropout: probability of dropping an element of the input of every layer but the first.
    """

    def __init__(
        self,
        kind: str,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bidirectional: bool = False,
        dropout: float = 0.0,
        options: LayerOptions | None = None,
    ) -> None:
        super().__init__()
        if kind not in RECURRENT_LAYERS:
            raise ValueError(f"unknown recurrent layer {kind!r}; choose from {', '.join(RECURRENT_LAYERS)}")
        if num_layers < 1:
            raise ValueError(f"a stack needs at least one layer, not {num_layers}")
        self.hidden_size = hidden_size
        self.output_size = 2 * hidden_size if bidirectional else hidden_size
        self.bidirectional = bidirectional
        self.dropout = dropout
        options = options or LayerOptions()

        def layers() -> nn.ModuleList:
            sizes = [input_size] + [self.output_size] * (num_layers - 1)
            return nn.ModuleList(RECURRENT_LAYERS[kind](size, hidden_size, options) for size in sizes)

        self.layers = layers()
        self.backward_layers = layers() if bidirectional else None

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        states: tuple[RecurrentState, ...] | None = None,
        need_channel_attention: bool = False,
    ) -> StackOutput:
        """Runs over a sequence x (T, B, D), right-padded; ``lengths`` (B,) or None if there is no padding.

        With two directions a state makes no sense before the sentence's end is known, so that ``states`` must be None.
        """
        if self.bidirectional and states is not None:
            raise ValueError("a bidirectional stack cannot go on from a state")
        layer_outputs, final_states, attentions = [], [], []
        for i, layer in enumerate(self.layers):
            if i > 0:
                x = F.dropout(x, self.dropout, self.training)
            result = layer(x, lengths, None if states is None else states[i], need_channel_attention)
            final_states.append(result.state)
            attentions.append(result.channel_attention)
            output = result.output
            if self.backward_layers is not None:
                result = self.backward_layers[i](reverse(x, lengths), lengths, None, need_channel_attention)
                final_states.append(result.state)
                if result.channel_attention is not None:
                    attentions.append(reverse(result.channel_attention, lengths))
                output = torch.cat([output, reverse(result.output, lengths)], dim=-1)
            layer_outputs.append(output)
            x = output
        has_attention = need_channel_attention and attentions[0] is not None
        return StackOutput(x, tuple(layer_outputs), tuple(final_states), tuple(attentions) if has_attention else None)

    def step(self, x: Tensor, states: tuple[RecurrentState, ...]) -> tuple[Tensor, tuple[RecurrentState, ...]]:
        """One time step of a one-directional stack: x (B, D) -> output (B, H) of the top layer and the next states."""
        return self.stepper(x.size(0))(x, states)

    def stepper(
        self, batch_size: int
    ) -> Callable[[Tensor, tuple[RecurrentState, ...]], tuple[Tensor, tuple[RecurrentState, ...]]]:
        """:meth:`step` for many steps; see :meth:`RecurrentLayer.stepper`."""
        steps = [layer.stepper(batch_size) for layer in self.layers]

        def step(x: Tensor, states: tuple[RecurrentState, ...]) -> tuple[Tensor, tuple[RecurrentState, ...]]:
            next_states = []
            for i, (layer_step, state) in enumerate(zip(steps, states, strict=True)):
                if i > 0:
                    x = F.dropout(x, self.dropout, self.training)
                x, state = layer_step(x, state)
                next_states.append(state)
            return x, tuple(next_states)

        return step


def reverse(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Reverses each row's real tokens of x (T, B, ...); padding stays where it is."""
    if lengths is None:
        return x.flip(0)
    time = torch.arange(x.size(0), device=x.device).unsqueeze(1)
    index = torch.where(time < lengths, lengths - 1 - time, time)
    return x.gather(0, index.view(*index.shape, *[1] * (x.dim() - 2)).expand_as(x))


def reorder_states(states: tuple[RecurrentState, ...], new_order: Tensor) -> tuple[RecurrentState, ...]:
    """Selects the rows ``new_order`` of every tensor of every state, as beam search asks for."""
    return tuple(type(state)(*(tensor.index_select(0, new_order) for tensor in state)) for state in states)
