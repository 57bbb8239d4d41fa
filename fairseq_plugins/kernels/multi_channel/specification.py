"""What the multi-channel recurrence is: one object says it to every backend; and Eq. 1 of the MC-RNN paper.

MC-RNN has C channels that are staggered (Eq. 1), as many lags as channels, and attention over the channels. HO-RNN is
the same recurrence with one channel that reads all its lags at every step, without 1/m and without attention; so is a
conventional layer, whose one lag is 1.

Symbols: B batch, T time steps, D input size, H hidden size, C channels, K lags, L the longest of them, G gates of the
cell (LSTM 4, GRU 3, RNN 1).

**Slot order.** From one step to the next the in-degree of a channel goes m -> m mod C + 1 (Eq. 1). Backends therefore
keep the channels ordered by the in-degree that they will have at the *next* step, in "slots" 0 ... C - 1 (in-degree
minus one): the connection W_j then always reads the same slots at every time step, and rows of a batch that are at
different times look alike. Only channel numbers (when the attention over channels is returned) need the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from ..checks import check_tensor

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
CONNECTIONS = ("state", "gate")

Number = TypeVar("Number", int, Tensor)


@dataclass(frozen=True)
class MultiChannelSpecification:
    """What a layer computes, whatever its sizes.

    Attributes:
        cell: ``lstm``, ``gru`` or ``rnn`` (tanh).
        connection: ``state``: W_j connect outputs (Eq. 2). ``gate``: they go into the gates, and there is no W_hh.
        lags: W_j reads h(t - lags[j - 1]); ascending.
        channels: C.
        is_staggered: a channel reads at each step as many lags as its in-degree m says (Eq. 1), divided by m;
            otherwise all of them, undivided.
        has_attention: the output is the attended mean of the channels (Eq. 4 to 6).

    Raises:
        ValueError: an unknown cell or connection, lags that are not positive and ascending, or channels that do not fit
            the rest: several must be staggered and attended to, and those that are staggered have the lags 1 ... C.
    """

    cell: str = "lstm"
    connection: str = "state"
    lags: tuple[int, ...] = (1,)
    channels: int = 1
    is_staggered: bool = False
    has_attention: bool = False

    def __post_init__(self) -> None:
        if self.cell not in GATES:
            raise ValueError(f"unknown cell {self.cell!r}; choose from {', '.join(GATES)}")
        if self.connection not in CONNECTIONS:
            raise ValueError(f"unknown connection {self.connection!r}; choose from {', '.join(CONNECTIONS)}")
        if self.channels < 1:
            raise ValueError(f"there must be at least 1 channel, not {self.channels}")
        if not self.lags or min(self.lags) < 1 or list(self.lags) != sorted(set(self.lags)):
            raise ValueError(f"lags must be positive and ascending, at least 1 of them, not {list(self.lags)}")
        if self.is_staggered and self.lags != tuple(range(1, self.channels + 1)):
            raise ValueError(f"{self.channels} staggered channels read as many lags, not {list(self.lags)}")
        if self.channels > 1 and not (self.is_staggered and self.has_attention):
            raise ValueError("several channels are staggered, and need attention")

    @classmethod
    def multi_channel(cls, cell: str, connection: str, channels: int) -> MultiChannelSpecification:
        """MC-RNN."""
        return cls(cell, connection, tuple(range(1, max(1, channels) + 1)), channels, True, True)

    @classmethod
    def higher_order(cls, cell: str, connection: str, lags: Sequence[int]) -> MultiChannelSpecification:
        """HO-RNN."""
        return cls(cell, connection, tuple(lags))

    @property
    def gates(self) -> int:
        """G."""
        return GATES[self.cell]

    @property
    def longest_lag(self) -> int:
        """L: how many outputs a layer carries from step to step."""
        return self.lags[-1]

    def shift(self, j: int) -> int:
        """How many slots further than what it reads the reader of ``lags[j]`` is."""
        return self.lags[j] - 1 if self.is_staggered else 0

    def divisors(self, like: Tensor) -> Tensor:
        """What Eq. 2 is divided by in each slot (C,): the in-degree m; 1 for HO-RNN."""
        if not self.is_staggered:
            return like.new_ones(self.channels)
        return torch.arange(1, self.channels + 1, dtype=like.dtype, device=like.device)

    def outputs_read(self, like: Tensor) -> Tensor:
        """How many outputs each slot reads (C,)."""
        return self.divisors(like) if self.is_staggered else like.new_full((self.channels,), len(self.lags))


class MultiChannelParameters(NamedTuple):
    """The parameters of one layer, shared by its channels; laid out as in ``torch.nn.LSTMCell`` and its kin."""

    weight_ih: Tensor  # (G * H, D)
    weight_hh: Tensor | None  # (G * H, H) where the connection is "state", None where it is "gate"
    bias_ih: Tensor  # (G * H,)
    bias_hh: Tensor  # (G * H,)
    weight_connection: Tensor  # W_1 ... W_K: (K, H, H) for "state", (K, G * H, H) for "gate"
    attention_v: Tensor | None  # V of Eq. 6: (H, H + D); None where there is no attention
    attention_r: Tensor | None  # r of Eq. 6: (H,)


class MultiChannelLayer(NamedTuple):
    """One layer in one direction: all that backends know of it."""

    specification: MultiChannelSpecification
    parameters: MultiChannelParameters


class MultiChannelState(NamedTuple):
    """What one layer carries from a step to the next; each row's own, the batch first.

    ``history[:, j - 1, i]`` is h(time - j + 1) of the channel whose in-degree one step after that output is i + 1;
    the longest lag is as far as Eq. 2 can ever read. ``cell_state[:, i]`` is c(time) of the channel whose in-degree at
    time + 1 is i + 1.
    """

    history: Tensor  # (B, L, C slots, H)
    cell_state: Tensor  # (B, C slots, H) for the LSTM, (B, C slots, 0) for other cells
    time: Tensor  # (B,) int64, the number of tokens read so far


Stepper = Callable[[Tensor, MultiChannelState], tuple[Tensor, MultiChannelState]]
"""One time step of a layer: x (B, D) and a state -> output (B, H) and the next state."""


class MultiChannelOutput(NamedTuple):
    """What a backend returns for a sequence."""

    output: Tensor  # (T, B, H), zero at padding
    state: MultiChannelState  # each row's own at its last real token
    # Where asked for and there is attention, ``channel_attention`` (T, B, C): channels 1 ... C, zero at padding.
    details: dict[str, Tensor]


def in_degree(time: Number, channel: Number, channels: int) -> Number:
    """m(t, k), the number of predecessors connected to the node of channel k at time t (MC-RNN, Eq. 1; both from 1)."""
    return (time - channel - 1) % channels + 1


def channel_slots(first_time: Tensor, steps: int, channels: int) -> Tensor:
    """The slot that each channel's output has been stored in.

    Args:
        first_time: (B,) the time of the first step, minus one.
        steps: number of time steps T.

    Returns:
        (T, B, C) int64; entry [t, b, k - 1] is the slot of channel k.
    """
    time = first_time + torch.arange(1, steps + 1, device=first_time.device).unsqueeze(1)
    channel = torch.arange(1, channels + 1, device=first_time.device)
    return in_degree(time.unsqueeze(-1) + 1, channel, channels) - 1


def initial_state(
    layer: MultiChannelLayer, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None
) -> MultiChannelState:
    """The state before the first token: h(0, k) = h0 and c(0, k) = c0 in all channels, all older outputs zero.

    Args:
        layer: the state gets its parameters' device and dtype.
        batch_size: B.
        h0: (B, H), zero if None.
        c0: (B, H), zero if None; only the LSTM has it.

    Raises:
        ValueError: h0 or c0 is of another shape, precision or device.
    """
    specification, like = layer.specification, layer.parameters.weight_connection
    channels, hidden_size = specification.channels, like.size(-1)
    history = like.new_zeros(batch_size, specification.longest_lag, channels, hidden_size)
    if h0 is not None:
        check_tensor("h0", h0, (batch_size, hidden_size), like)
        newest = h0.unsqueeze(1).expand(-1, channels, -1)
        history = torch.cat([newest.unsqueeze(1), history[:, 1:]], dim=1)
    has_cell_state = specification.cell == "lstm"
    cell_state = like.new_zeros(batch_size, channels, hidden_size if has_cell_state else 0)
    if c0 is not None and has_cell_state:
        check_tensor("c0", c0, (batch_size, hidden_size), like)
        cell_state = c0.unsqueeze(1).expand(-1, channels, -1)
    return MultiChannelState(history, cell_state, torch.zeros(batch_size, dtype=torch.long, device=like.device))
