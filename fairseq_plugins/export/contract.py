"""What every translation model is to the graphs that are made of it.

Symbols: N sentences, K hypotheses of each, S source tokens, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from ..modules.recurrent.contract import RecurrentState

Named = dict[str, Tensor]


class Encoded(NamedTuple):
    """What an encoder gives a decoder.

    Attributes:
        memory: (N, ...), what stays as it is.
        states: (N, ...), before the first step.
    """

    memory: Named
    states: Named


class Stepped(NamedTuple):
    """What a step gives.

    Attributes:
        log_probabilities: (N, K, V).
        attention: (N, K, S).
        states: (N K, ...), of the hypotheses in turn.
    """

    log_probabilities: Tensor
    attention: Tensor
    states: Named


class ExportedModel(nn.Module, ABC):
    """A translation model as it is exported.

    Attributes:
        has_positions: whether a step asks how many there were before.
    """

    has_positions = False

    @abstractmethod
    def encode(self, tokens: Tensor) -> Encoded:
        """Source tokens (N, S), padded on the right."""

    @abstractmethod
    def step(self, tokens: Tensor, position: Tensor | None, memory: Named, states: Named) -> Stepped:
        """One step.

        Args:
            tokens: (N, K).
            position: (), the steps before; None where the model has no positions.
            memory: of the encoder.
            states: (N K, ...).
        """


def by_beam(rows: Tensor, tokens: Tensor) -> Tensor:
    """(N K, …) -> (N, K, …), for tokens (N, K)."""
    return rows.view(*tokens.shape, *rows.shape[1:])


def flat(states: Sequence[RecurrentState]) -> Named:
    """The states of layers, by name."""
    return {f"{i}.{part}": tensor for i, state in enumerate(states) for part, tensor in enumerate(state)}


def nested(states: Named, layers: int) -> tuple[RecurrentState, ...]:
    """The way back of :func:`flat`."""
    return tuple(
        tuple(tensor for name, tensor in states.items() if name.split(".")[0] == str(i)) for i in range(layers)
    )
