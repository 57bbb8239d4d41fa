"""The interface that every recurrent layer has, so that encoders, decoders and language models are written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

RecurrentState = tuple[Tensor, ...]
"""A NamedTuple of tensors with the batch first: beam search reorders each of them with one ``index_select``."""


class LayerOutput(NamedTuple):
    """What a layer returns for a sequence."""

    output: Tensor  # (T, B, H), zero at padding
    state: RecurrentState  # each row's own at its last real token
    channel_attention: Tensor | None  # (T, B, C), channels 1 ... C; None unless asked for and there are channels


class RecurrentLayer(nn.Module, ABC):
    """One recurrent layer in one direction.

    Attributes:
        input_size: D.
        hidden_size: H, the width of the output.
        has_memory: whether the layer starts from a c0 beside the h0, as an LSTM does.
    """

    input_size: int
    hidden_size: int
    has_memory: bool

    @abstractmethod
    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: RecurrentState | None = None,
        need_channel_attention: bool = False,
    ) -> LayerOutput:
        """Runs over a sequence.

        Args:
            x: (T, B, D), right-padded.
            lengths: (B,) real tokens of each row, 0 ... T; None if there is no padding.
            state: the state to go on from; :meth:`initial_state` if None.
        """

    @abstractmethod
    def step(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One time step: x (B, D) -> output (B, H) and the next state. Differentiable."""

    def stepper(self, batch_size: int) -> Callable[[Tensor, RecurrentState], tuple[Tensor, RecurrentState]]:
        """:meth:`step` for many steps of about ``batch_size`` rows (any number works).

        A layer prepares here what its steps have in common; the parameters must not change while it is in use.
        """
        return self.step

    @abstractmethod
    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> RecurrentState:
        """The state before the first token, from h0 and c0 (B, H), zero if None; device and dtype of the parameters."""
