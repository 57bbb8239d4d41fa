"""Depth and two directions for any kind of recurrent network, with dropout between the layers and DropConnect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from ...kernels.checks import check_number
from ..regularization import LockedDropout, with_parameters
from .contract import RecurrentNetwork, RecurrentOutput, RecurrentState, Step
from .registry import Direction, LayerSizes, recurrent_kind

Level = TypeVar("Level")


class StackOutput(NamedTuple):
    """What a stack returns for a sequence; with two directions, outputs are forwards, then backwards."""

    output: Tensor  # (T, B, output_size) of the top layer, before any dropout
    states: tuple[RecurrentState | None, ...]  # of each layer; with two directions, forwards and backwards in turn
    details: dict[str, Tensor]  # in the sentence's order, under the names of the layers: layers.0.channel_attention
    layer_outputs: tuple[Tensor, ...]  # of each layer, before any dropout
    networks: tuple[tuple[RecurrentOutput, ...], ...]  # of each layer, as its networks returned it


class NetworkStack(nn.Module):
    """Networks on top of each other, each of which reads the output of the one below.

    Args:
        layers: the networks, from the lowest on.
        backward_layers: as many, which read the sentence backwards; None for none. Upper layers read both outputs.
        dropout: what the inputs of all layers but the first go through.
        drop_connect: the probability of dropping an element of the recurrent weights, drawn once a forward pass.
    """

    def __init__(
        self,
        layers: Iterable[RecurrentNetwork[Any]],
        backward_layers: Iterable[RecurrentNetwork[Any]] | None = None,
        dropout: nn.Module | None = None,
        drop_connect: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = nn.Identity() if dropout is None else dropout
        self.drop_connect = drop_connect
        self.layers = cast("Sequence[RecurrentNetwork[Any]]", nn.ModuleList(layers))
        backwards = None if backward_layers is None else nn.ModuleList(backward_layers)
        self.backward_layers = cast("Sequence[RecurrentNetwork[Any]] | None", backwards)

    @property
    def output_size(self) -> int:
        """The width of the output."""
        return sum(network.output_size for network in self.networks(len(self.layers) - 1))

    @property
    def is_steppable(self) -> bool:
        """Whether it runs step by step."""
        return self.backward_layers is None and all(layer.is_steppable for layer in self.layers)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        states: Sequence[RecurrentState] | None = None,
        need_details: bool = False,
    ) -> StackOutput:
        """Runs over a sequence x (T, B, D), right-padded; ``lengths`` (B,) or None if there is no padding.

        With two directions a state makes no sense before the sentence's end is known, so that ``states`` must be None.

        Raises:
            ValueError: x, lengths or states do not fit the layers or each other.
        """
        if states is not None and not self.is_steppable:
            raise ValueError("a bidirectional stack cannot go on from a state")
        check_number(states, len(self.layers))
        outputs, by_layer, details = [], [], {}
        for i in range(len(self.layers)):
            if i > 0:
                x = self.dropout(x)
            results = []
            for network, name in zip(self.networks(i), ("layers", "backward_layers"), strict=False):
                is_backward = name == "backward_layers"
                result = with_parameters(
                    network,
                    network.drop_connected(self.drop_connect),
                    network,
                    reverse(x, lengths) if is_backward else x,
                    lengths,
                    None if states is None else states[i],
                    need_details,
                )
                results.append(result)
                for detail, value in result.details.items():
                    details[f"{name}.{i}.{detail}"] = reverse(value, lengths) if is_backward else value
            if len(results) == 1:
                x = results[0].output
            else:
                x = torch.cat([results[0].output, reverse(results[1].output, lengths)], dim=-1)
            outputs.append(x)
            by_layer.append(tuple(results))
        states = tuple(result.state for results in by_layer for result in results)
        return StackOutput(x, states, details, tuple(outputs), tuple(by_layer))

    def summaries(self, result: StackOutput, lengths: Tensor | None) -> list[Tensor]:
        """What a decoder starts from: (B, size) for each level of each layer, forwards, then backwards; see
        :meth:`.RecurrentNetwork.summaries`."""
        summaries = []
        for i, results in enumerate(result.networks):
            directions = [
                network.summaries(of_network, lengths)
                for network, of_network in zip(self.networks(i), results, strict=True)
            ]
            summaries += [torch.cat(level, dim=-1) for level in zip(*directions, strict=True)]
        return summaries

    @property
    def summary_sizes(self) -> list[int]:
        """The widths of :meth:`summaries`."""
        sizes: list[int] = []
        for i in range(len(self.layers)):
            sizes += map(sum, zip(*(network.summary_sizes for network in self.networks(i)), strict=True))
        return sizes

    def step(self, x: Tensor, states: Sequence[RecurrentState]) -> tuple[Tensor, tuple[RecurrentState, ...]]:
        """One time step of a one-directional stack: x (B, D) -> output (B, H) of the top layer and the next states."""
        return self.stepper(x.size(0))(x, states)

    def stepper(
        self, batch_size: int, dropouts: Sequence[Callable[[Tensor], Tensor]] | None = None
    ) -> Callable[[Tensor, Sequence[RecurrentState]], tuple[Tensor, tuple[RecurrentState, ...]]]:
        """:meth:`step` for many steps, one sequence; see :meth:`.RecurrentNetwork.stepper`.

        Args:
            batch_size: about how many rows.
            dropouts: what the inputs of all layers but the first go through, from the second layer on; the stack's own
                dropout if None.

        Raises:
            TypeError: the stack does not run step by step.
        """
        if not self.is_steppable:
            raise TypeError("a stack in two directions does not run step by step")
        steps = [self._stepper_of(layer, batch_size) for layer in self.layers]
        if dropouts is None:
            dropouts = [
                self.dropout.for_steps() if isinstance(self.dropout, LockedDropout) else self.dropout
                for _ in range(len(self.layers) - 1)
            ]

        def step(x: Tensor, states: Sequence[RecurrentState]) -> tuple[Tensor, tuple[RecurrentState, ...]]:
            check_number(states, len(self.layers))
            next_states = []
            for i, (layer_step, state) in enumerate(zip(steps, states, strict=True)):
                if i > 0:
                    x = dropouts[i - 1](x)
                x, state = layer_step(x, state)
                next_states.append(state)
            return x, tuple(next_states)

        return step

    def networks(self, layer: int) -> list[RecurrentNetwork[Any]]:
        """One for each direction that has its own."""
        backwards = [] if self.backward_layers is None else [self.backward_layers[layer]]
        return [self.layers[layer], *backwards]

    def _stepper_of(self, layer: RecurrentNetwork[Any], batch_size: int) -> Step[Any]:
        dropped = layer.drop_connected(self.drop_connect)
        step = with_parameters(layer, dropped, layer.stepper, batch_size)
        if not dropped:
            return step
        # A network may read its parameters when a stepper is made or at each step.
        return lambda x, state: with_parameters(layer, dropped, step, x, state)


class RecurrentStack(NetworkStack):
    """Layers of one kind on top of each other.

    A kind that handles depth itself has one network for all layers, and ``layers`` one element; one that handles
    directions itself is asked for both, and neither repeated nor reversed.

    Args:
        kind: the name of a kind (``registry.py``).
        input_size: D.
        hidden_sizes: the width of each layer, from the lowest on.
        bidirectional: every layer reads the sentence in both directions, and upper layers read both outputs.
        dropout: what the inputs of all layers but the first go through.
        options: what the kind can be asked for; its own defaults if None.
        drop_connect: the probability of dropping an element of the recurrent weights, drawn once a forward pass.

    Raises:
        ValueError: there is no such kind or no layer, or the kind does not take these sizes or options.
    """

    def __init__(
        self,
        kind: str,
        input_size: int,
        hidden_sizes: Sequence[int],
        bidirectional: bool = False,
        dropout: nn.Module | None = None,
        options: Any = None,
        drop_connect: float = 0.0,
    ) -> None:
        kind_of_layer = recurrent_kind(kind)
        if not hidden_sizes:
            raise ValueError("a stack needs at least one layer, not 0")
        is_wrapped = bidirectional and not kind_of_layer.handles_directions
        dropout = nn.Identity() if dropout is None else dropout
        if options is None:
            options = kind_of_layer.options()

        def layers(direction: Direction) -> list[RecurrentNetwork[Any]]:
            made: list[RecurrentNetwork[Any]] = []
            size = input_size
            for layer in range(1 if kind_of_layer.handles_depth else len(hidden_sizes)):
                sizes = LayerSizes(size, tuple(hidden_sizes), layer, direction, dropout)
                made.append(kind_of_layer.make(options, sizes))
                size = 2 * made[-1].output_size if is_wrapped else made[-1].output_size
            return made

        forwards = layers("both" if bidirectional and kind_of_layer.handles_directions else "forwards")
        super().__init__(forwards, layers("backwards") if is_wrapped else None, dropout, drop_connect)


def reverse(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Reverses each row's real tokens of x (T, B, ...); padding stays where it is."""
    if lengths is None:
        return x.flip(0)
    time = torch.arange(x.size(0), device=x.device).unsqueeze(1)
    index = torch.where(time < lengths, lengths - 1 - time, time)
    return x.gather(0, index.view(*index.shape, *[1] * (x.dim() - 2)).expand_as(x))


def reorder_states(states: Sequence[RecurrentState], new_order: Tensor) -> tuple[RecurrentState, ...]:
    """Selects the rows ``new_order`` of every tensor of every state, as beam search asks for."""
    return tuple(type(state)(*(tensor.index_select(0, new_order) for tensor in state)) for state in states)


def of_levels(levels: Sequence[Level], layers: int) -> list[Level]:
    """What belongs to the encoder's levels, for each layer of a decoder: the top one's where the encoder has fewer."""
    return [levels[min(i, len(levels) - 1)] for i in range(layers)]


def initial_states(
    layers: Sequence[RecurrentNetwork[Any]], hidden: nn.ModuleList, memory: nn.ModuleList, summaries: Sequence[Tensor]
) -> tuple[tuple[RecurrentState, ...], Tensor]:
    """A decoder's states before the first token: h0 = tanh(A e + a) and c0 = B e + b of each layer.

    Args:
        layers: of the decoder.
        hidden: A and a of each layer.
        memory: B and b of each layer, where they have a cell state.
        summaries: e of each layer, (B, size).

    Returns:
        the states, and the top layer's h0 (B, H).
    """
    states = []
    for i, (layer, summary) in enumerate(zip(layers, summaries, strict=True)):
        h0 = torch.tanh(hidden[i](summary))
        c0 = memory[i](summary) if layer.has_cell_state else None
        states.append(layer.initial_state(summary.size(0), h0, c0))
    return tuple(states), h0
