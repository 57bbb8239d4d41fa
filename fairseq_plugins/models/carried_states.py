"""The states that a recurrent language model goes on from in the next window of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ..modules import RecurrentNetwork, RecurrentState

Tensors = list[list[Tensor]]
"""Of each layer, the tensors of its state, the batch first: what a checkpoint can hold."""


class CarriedStates:
    """Given to each forward pass over a text, window by window, as fairseq's ``incremental_state`` is step by step.

    Each model keeps its own states in it, detached from the window that they come from.
    """

    def __init__(self) -> None:
        self._states: dict[nn.Module, tuple[RecurrentState, ...]] = {}
        self._loaded: Tensors | None = None

    def clear(self) -> None:
        """The next window is the first."""
        self._states.clear()
        self._loaded = None

    def of(self, owner: nn.Module, layers: Sequence[RecurrentNetwork[Any]]) -> tuple[RecurrentState, ...] | None:
        """What a model with these layers goes on from; None before the first window."""
        if self._loaded is not None:
            self._states[owner] = tuple(
                _as_state(layer, tensors) for layer, tensors in zip(layers, self._loaded, strict=True)
            )
            self._loaded = None
        return self._states.get(owner)

    def keep(self, owner: nn.Module, states: Sequence[RecurrentState]) -> None:
        """Keeps what a model goes on from: copies, since a state may be a view of a whole window."""
        self._states[owner] = tuple(type(state)(*(tensor.detach().clone() for tensor in state)) for state in states)

    def tensors(self) -> Tensors:
        """The states of the only model; nothing before the first window."""
        if self._loaded is not None:
            return self._loaded
        return [list(state) for states in self._states.values() for state in states]

    def load(self, tensors: Tensors) -> None:
        """Goes on from what :meth:`tensors` said, in this process or in another."""
        self.clear()
        self._loaded = tensors or None


def _as_state(layer: RecurrentNetwork[Any], tensors: Sequence[Tensor]) -> RecurrentState:
    like = layer.initial_state(1)
    state: RecurrentState = type(like)(*(tensor.to(other) for tensor, other in zip(tensors, like, strict=True)))
    return state
