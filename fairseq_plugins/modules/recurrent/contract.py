"""What every recurrent network is to encoders, decoders and language models, so that these are written once.

Symbols: B batch, T time steps, D input size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ...kernels.checks import StepCheck, check_sequence
from ..regularization import dropped_parameters

RecurrentState = tuple[Tensor, ...]
"""A NamedTuple of tensors with the batch first: beam search reorders each of them with one ``index_select``."""

State = TypeVar("State", bound=RecurrentState)

Step = Callable[[Tensor, State], tuple[Tensor, State]]
"""One time step: x (B, D) and a state -> output (B, output_size) and the next state."""


class RecurrentOutput(NamedTuple):
    """What a network returns for a sequence."""

    output: Tensor  # (T, B, output_size), zero at padding
    state: RecurrentState | None  # each row's own at its last real token; None where nothing can go on from it
    details: dict[str, Tensor]  # what else happened inside, by name, time first; empty unless asked for


class RecurrentNetwork(nn.Module, ABC, Generic[State]):
    """A recurrent layer, or several that belong together, in one direction or, where its kind says so, in both.

    For a type checker it is generic in its state: ``class LeakyRNN(RecurrentNetwork[LeakyState])``.

    Attributes:
        input_size: D.
        output_size: the width of the output.
        has_cell_state: whether it starts from a c0 beside the h0, as an LSTM does.
        is_steppable: whether it runs one time step after the other too, so that a decoder can use it: a network in two
            directions cannot.
        has_fixed_steps: whether a step is the same operations whatever the numbers and the epoch are, none of them
            random and none that waits for the GPU: what a graph of a decoder's steps needs.
    """

    input_size: int
    output_size: int
    has_cell_state: bool
    is_steppable: bool = True
    has_fixed_steps: bool = False

    @abstractmethod
    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: State | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        """Runs over a sequence.

        Args:
            x: (T, B, D), right-padded.
            lengths: (B,) real tokens of each row, 0 ... T; None if there is no padding.
            state: the state to go on from; :meth:`initial_state` if None.
            need_details: fill :attr:`RecurrentOutput.details`.

        Raises:
            ValueError: x, lengths or state do not fit the network or each other.
        """

    @abstractmethod
    def recurrent_parameters(self) -> list[str]:
        """The names of the parameters that DropConnect may drop: those that multiply earlier outputs."""

    def drop_connected(self, p: float) -> dict[str, Tensor]:
        """What DropConnect with probability ``p`` puts in the place of parameters and buffers for a sequence, by name;
        nothing outside training."""
        return dropped_parameters(self, self.recurrent_parameters(), p)

    def summaries(self, result: RecurrentOutput, lengths: Tensor | None) -> list[Tensor]:
        """What a decoder starts from, for each level of the network: (B, size) of :attr:`summary_sizes`.

        By default there is one level, and it is the output at each row's last real token, zero where there is none.

        Args:
            result: what :meth:`forward` returned.
            lengths: as :meth:`forward` was given them.
        """
        output = result.output
        if not output.size(0):
            return [output.new_zeros(output.shape[1:])]
        if lengths is None:
            return [output[-1]]
        # The output at padding is zero, which is where -1 points to in a row of no tokens.
        return [output[lengths.long() - 1, torch.arange(output.size(1), device=output.device)]]

    @property
    def summary_sizes(self) -> list[int]:
        """The widths of :meth:`summaries`."""
        return [self.output_size]

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One time step: x (B, D) -> output (B, output_size) and the next state. Differentiable.

        Raises:
            TypeError: the network does not run step by step.
        """
        raise TypeError(f"{type(self).__name__} does not run step by step")

    def stepper(self, batch_size: int) -> Step[State]:
        """:meth:`step` for many steps of about ``batch_size`` rows (any number works).

        A network prepares here what its steps have in common; the parameters must not change while it is in use.
        """
        return self.step

    def check_sequence(self, x: Tensor, lengths: Tensor | None, state: State | None) -> tuple[Tensor, Tensor | None]:
        """What :meth:`forward` begins with: checks its arguments, and returns x, zero at padding, and the lengths.

        Raises:
            ValueError: they do not fit the network or each other.
        """
        start = () if state is None else self.initial_state(0)
        return check_sequence(x, lengths, state, self.input_size, next(self.parameters(), x), start)

    def step_check(self) -> StepCheck:
        """What checks the arguments of each step."""
        return StepCheck(self.input_size, next(self.parameters()), self.initial_state(0))

    def unread(self, x: Tensor, state: State | None) -> RecurrentOutput:
        """What :meth:`forward` returns for x of no steps: no outputs, and the state that it would start from."""
        return RecurrentOutput(x[..., :1].expand(-1, -1, self.output_size), state, {})

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> State:
        """The state before the first token; device and dtype of the parameters (:func:`.checked_start`).

        Args:
            batch_size: B.
            h0: (B, output_size), zero if None.
            c0: the same for networks that have a cell state.

        Raises:
            ValueError: h0 or c0 is of another shape, precision or device.
            TypeError: the network does not run step by step.
        """
        raise TypeError(f"{type(self).__name__} does not run step by step")

    def on_epoch(self, epoch: int) -> None:  # noqa: B027 - most networks have nothing to do
        """Called before each epoch of a training, counted from 1."""
