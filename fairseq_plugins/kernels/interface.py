"""What every backend of the multi-channel recurrence takes and returns, and Eq. 1 of the MC-RNN paper.

Symbols: B batch, T time steps, D input size, H hidden size, C channels, L lags, G gates of the cell (LSTM 4, GRU 3,
RNN 1).

**Slot order.** From one step to the next the in-degree of a channel goes m -> m mod C + 1 (Eq. 1). Backends therefore
keep the channels ordered by the in-degree that they will have at the *next* step, in "slots" 0 ... C - 1 (in-degree
minus one): the connection W_j then always reads the same slots at every time step, and rows of a batch that stand at
different times look alike. Only channel numbers (when the attention over channels is returned) need the time.

MC-RNN has L = C. HO-RNN is the same recurrence with one channel (slot) that reads all L lags at every step, without 1/m
and without attention over channels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
CONNECTIONS = ("state", "gate")


class MultiChannelParameters(NamedTuple):
    """The parameters of one layer, shared by its channels; laid out as in ``torch.nn.LSTMCell`` and its kin."""

    weight_ih: Tensor  # (G * H, D)
    weight_hh: Tensor | None  # (G * H, H) where the connection is "state", None where it is "gate"
    bias_ih: Tensor  # (G * H,)
    bias_hh: Tensor  # (G * H,)
    weight_connection: Tensor  # W_1 ... W_L: (L, H, H) for "state", (L, G * H, H) for "gate"
    attention_v: Tensor | None  # V of Eq. 6: (H, H + D); None where there is one channel and no attention
    attention_r: Tensor | None  # r of Eq. 6: (H,)

    @property
    def channels(self) -> int:
        return 1 if self.attention_v is None else self.weight_connection.size(0)


class MultiChannelState(NamedTuple):
    """What one layer carries from a step to the next; each row's own, the batch first.

    ``history[:, j - 1, i]`` is h(time - j + 1) of the channel whose in-degree one step after that output is i + 1;
    the lags j = 1 ... L are all that Eq. 2 can ever read. ``memory[:, i]`` is c(time) of the channel whose in-degree
    at time + 1 is i + 1.
    """

    history: Tensor  # (B, L lags, C slots, H)
    memory: Tensor  # (B, C slots, H) for the LSTM, (B, C slots, 0) for cells without a memory
    time: Tensor  # (B,) int64, the number of tokens read so far


Stepper = Callable[[Tensor, MultiChannelState], tuple[Tensor, MultiChannelState]]
"""One time step of a layer: x (B, D) and a state -> output (B, H) and the next state."""


class MultiChannelOutput(NamedTuple):
    """What a backend returns for a sequence."""

    output: Tensor  # (T, B, H), zero at padding
    state: MultiChannelState  # each row's own at its last real token
    channel_attention: Tensor | None  # (T, B, C), channels in the order 1 ... C, zero at padding; None if there is none


def in_degree(time: int | Tensor, channel: int | Tensor, channels: int) -> int | Tensor:
    """m(t, k), the number of predecessors connected to the node of channel k at time t (MC-RNN, Eq. 1; both from 1)."""
    return (time - channel - 1) % channels + 1


def slot_shift(lag: int, slots: int, lags: int) -> int:
    """How many slots further than what it reads the reader of lag ``lag`` (from 1) stands."""
    return lag - 1 if slots == lags else 0


def divisors(slots: int, lags: int, like: Tensor) -> Tensor:
    """What Eq. 2 is divided by in each slot (C,): the in-degree m; 1 for HO-RNN."""
    if slots != lags:
        return like.new_ones(slots)
    return torch.arange(1, slots + 1, dtype=like.dtype, device=like.device)


def outputs_read(slots: int, lags: int, like: Tensor) -> Tensor:
    """How many outputs each slot reads (C,)."""
    return divisors(slots, lags, like) if slots == lags else like.new_full((slots,), lags)


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
    batch_size: int,
    parameters: MultiChannelParameters,
    cell: str,
    h0: Tensor | None = None,
    c0: Tensor | None = None,
) -> MultiChannelState:
    """The state before the first token: h(0, k) = h0 and c(0, k) = c0 in all channels, all older outputs zero.

    Args:
        parameters: those of the layer; the state gets their device and dtype.
        h0: (B, H), zero if None.
        c0: (B, H), zero if None; only the LSTM has it.
    """
    like, channels = parameters.weight_connection, parameters.channels
    lags, _, hidden_size = like.shape
    history = like.new_zeros(batch_size, lags, channels, hidden_size)
    if h0 is not None:
        newest = h0.unsqueeze(1).expand(-1, channels, -1)
        history = torch.cat([newest.unsqueeze(1), history[:, 1:]], dim=1)
    memory = like.new_zeros(batch_size, channels, hidden_size if cell == "lstm" else 0)
    if c0 is not None and cell == "lstm":
        memory = c0.unsqueeze(1).expand(-1, channels, -1)
    return MultiChannelState(history, memory, torch.zeros(batch_size, dtype=torch.long, device=like.device))
