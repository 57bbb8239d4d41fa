"""MC-RNN, the multi-channel RNN: "Multi-Channel RNN" (AAAI 2019), Section 3, Eq. 1 to 6.

What the paper leaves open, and what is done here: the divisor of Eq. 2 is the in-degree m even where some
predecessors are the zero padding before the sentence; Eq. 1 decides how the channels are staggered; the sums of Eq. 4
and 5 run over the C channels; the LSTM's memory comes from the channel's immediate predecessor; in the GRU the
temporal input s takes the place of h(t - 1) everywhere. The attended output is not fed back: each channel has its own
recurrence. W_j starts as the identity: a channel then starts as a conventional layer that reads the mean of its block,
which on text learnt faster than orthogonal W_j (``connection_init``), a mean of rotations.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .. import kernels
from ..kernels.interface import CONNECTIONS, GATES
from .recurrent import LayerOutput, RecurrentLayer

CELLS = tuple(GATES)
CONNECTION_INITS = ("identity", "orthogonal")


class MultiChannelRNN(RecurrentLayer):
    """One MC-RNN layer in one direction.

    Args:
        input_size: D.
        hidden_size: H.
        channels: C = n - 1 for blocks of n tokens; any number from 1.
        cell: ``lstm``, ``gru`` or ``rnn`` (tanh).
        connection: ``state``: Eq. 2 as printed, W_j maps outputs to the temporal input that the cell reads.
            ``gate``: W_j maps outputs to the gates directly (there is no ``weight_hh``), with the same 1/m; the GRU
            then interpolates with the mean of the outputs. With one channel, ``gate`` is exactly ``torch.nn.LSTM``,
            ``GRU`` or ``RNN``, and ``state`` is with W_1 = I.
        connection_init: how W_j starts in ``state``: ``identity`` or ``orthogonal``. In ``gate`` it starts as recurrent
            weights do.

    Raises:
        ValueError: a size below 1, or an unknown cell, connection or initialisation.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        channels: int = 3,
        cell: str = "lstm",
        connection: str = "state",
        connection_init: str = "identity",
    ) -> None:
        super().__init__()
        if min(input_size, hidden_size, channels) < 1:
            raise ValueError(f"sizes and channels must be at least 1, not {input_size}, {hidden_size}, {channels}")
        if cell not in GATES:
            raise ValueError(f"unknown cell {cell!r}; choose from {', '.join(GATES)}")
        if connection not in CONNECTIONS:
            raise ValueError(f"unknown connection {connection!r}; choose from {', '.join(CONNECTIONS)}")
        if connection_init not in CONNECTION_INITS:
            raise ValueError(f"unknown initialisation {connection_init!r}; choose from {', '.join(CONNECTION_INITS)}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.channels = channels
        self.cell = cell
        self.connection = connection
        self.connection_init = connection_init
        self.has_memory = cell == "lstm"

        rows = GATES[cell] * hidden_size
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size))
        self.bias_ih = nn.Parameter(torch.empty(rows))
        self.bias_hh = nn.Parameter(torch.empty(rows))
        if connection == "state":
            self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size))
            self.weight_connection = nn.Parameter(torch.empty(channels, hidden_size, hidden_size))
        else:
            self.register_parameter("weight_hh", None)
            self.weight_connection = nn.Parameter(torch.empty(channels, rows, hidden_size))
        self.attention_v = nn.Parameter(torch.empty(hidden_size, hidden_size + input_size))
        self.attention_r = nn.Parameter(torch.empty(hidden_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The cell as in ``torch.nn.LSTMCell``; W_j as ``connection_init`` says; V Xavier."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, self.attention_r):
            if parameter is not None:
                nn.init.uniform_(parameter, -bound, bound)
        for weight in self.weight_connection:
            if self.connection == "gate":
                nn.init.uniform_(weight, -bound, bound)
            elif self.connection_init == "identity":
                nn.init.eye_(weight)
            else:
                nn.init.orthogonal_(weight)
        nn.init.xavier_uniform_(self.attention_v)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: kernels.MultiChannelState | None = None,
        need_channel_attention: bool = False,
    ) -> LayerOutput:
        if state is None:
            state = self.initial_state(x.size(1))
        return LayerOutput(
            *kernels.multi_channel_rnn(
                x, lengths, state, self._parameters_tuple(), self.cell, self.connection, need_channel_attention
            )
        )

    def step(self, x: Tensor, state: kernels.MultiChannelState) -> tuple[Tensor, kernels.MultiChannelState]:
        return self.stepper(x.size(0))(x, state)

    def stepper(self, batch_size: int) -> kernels.Stepper:
        return kernels.multi_channel_stepper(self._parameters_tuple(), self.cell, self.connection, batch_size)

    def initial_state(
        self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None
    ) -> kernels.MultiChannelState:
        """h(0, k) = h0 and c(0, k) = c0 in all channels; all older outputs are zero."""
        return kernels.initial_state(
            batch_size, self.channels, self.hidden_size, self.cell, self.weight_ih, h0, c0 if self.has_memory else None
        )

    def _parameters_tuple(self) -> kernels.MultiChannelParameters:
        return kernels.MultiChannelParameters(
            self.weight_ih,
            self.weight_hh,
            self.bias_ih,
            self.bias_hh,
            self.weight_connection,
            self.attention_v,
            self.attention_r,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.input_size}, {self.hidden_size}, channels={self.channels}, cell={self.cell!r}, "
            f"connection={self.connection!r}"
        )
