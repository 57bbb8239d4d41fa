"""MC-RNN, the multi-channel RNN: "Multi-Channel RNN" (AAAI 2019), Section 3, Eq. 1 to 6.

What the paper leaves open, and what is done here: the divisor of Eq. 2 is the in-degree m even where some
predecessors are the zero padding before the sentence; Eq. 1 decides how the channels are staggered; the sums of Eq. 4
and 5 run over the C channels; the LSTM's cell state comes from the channel's immediate predecessor; in the GRU the
temporal input s takes the place of h(t - 1) everywhere. The attended output is not fed back: each channel has its own
recurrence. W_j starts as the identity: a channel then starts as a conventional layer that reads the mean of its block,
which on text learnt faster than orthogonal W_j (``connection_init``), a mean of rotations.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...kernels import MultiChannelSpecification
from ...kernels.dropout import dropout
from ..regularization import dropped_parameters
from .connected import ConnectedOptions, ConnectedRNN
from .registry import LayerSizes, option, register_recurrent_kind

CONNECTION_INITS = ("identity", "orthogonal")


@dataclass(frozen=True)
class MultiChannelOptions(ConnectedOptions):
    """What MC-RNN can be asked for."""

    channels: int = option(3, "channels: block size minus one", minimum=1)
    connection_init: str = option(
        "identity", "how the connections start (--connection state)", choices=CONNECTION_INITS
    )
    connection_rate: float = option(
        1.0,
        "how far an update by Adam moves connections that start as the identity (--connection state); 1: as far as "
        "other weights",
        minimum=0,
        before=1.0,
    )


class MultiChannelRNN(ConnectedRNN):
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
        connection_rate: where W_j starts as the identity, it is I + rate (P_j - I), P_j being ``weight_connection``.
            Adam moves each element of P_j as far as any other weight, however small its gradient: at a rate of 1 four
            updates of 1e-3 put as much into the other 255 elements of a row (H = 256) as its diagonal holds. Elsewhere
            the rate changes nothing.

    Raises:
        ValueError: a size below 1, a negative rate, or an unknown cell, connection or initialisation.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        channels: int = 3,
        cell: str = "lstm",
        connection: str = "state",
        connection_init: str = "identity",
        connection_rate: float = 1.0,
    ) -> None:
        specification = MultiChannelSpecification.multi_channel(cell, connection, channels)
        super().__init__(input_size, hidden_size, specification)
        if connection_init not in CONNECTION_INITS:
            raise ValueError(f"unknown initialisation {connection_init!r}; choose from {', '.join(CONNECTION_INITS)}")
        if connection_rate < 0:
            raise ValueError(f"the connections' rate must be at least 0, not {connection_rate}")
        self.channels = channels
        self.connection_init = connection_init
        self.connection_rate = connection_rate
        self.register_buffer("dropped_connections", None, persistent=False)
        self.reset_parameters()

    @property
    def has_rate(self) -> bool:
        """Whether W_j is not ``weight_connection`` itself."""
        return self.connection_rate != 1 and self.connection == "state" and self.connection_init == "identity"

    @property
    def connections(self) -> Tensor:
        """W_1 ... W_C (C, H, H); into the gates (C, 4H, H) in the LSTM."""
        if self.dropped_connections is not None:
            return self.dropped_connections
        if not self.has_rate:
            return self.weight_connection
        identity = torch.eye(self.hidden_size, dtype=self.weight_connection.dtype, device=self.weight_connection.device)
        return torch.lerp(identity, self.weight_connection, self.connection_rate)

    def drop_connected(self, p: float) -> dict[str, Tensor]:
        """See :meth:`.RecurrentNetwork.drop_connected`. It is W_j that is dropped: a dropped element of P_j would leave
        that of the identity."""
        if not (self.has_rate and self.training and p):
            return super().drop_connected(p)
        return {**dropped_parameters(self, ["weight_hh"], p), "dropped_connections": dropout(self.connections, p)}

    def reset_parameters(self) -> None:
        """The cell as in ``torch.nn.LSTMCell``; W_j as ``connection_init`` says; V Xavier."""
        self.reset_cell()
        for weight in self.weight_connection:
            if self.connection == "gate":
                nn.init.uniform_(weight, -self.bound, self.bound)
            elif self.connection_init == "identity":
                nn.init.eye_(weight)
            else:
                nn.init.orthogonal_(weight)
        nn.init.xavier_uniform_(self.attention_v)


@register_recurrent_kind("mc_rnn", MultiChannelOptions, "multi-channel RNN (MC-RNN)")
def _multi_channel_rnn(options: MultiChannelOptions, sizes: LayerSizes) -> MultiChannelRNN:
    return MultiChannelRNN(
        sizes.input_size,
        sizes.hidden_size,
        options.channels,
        options.cell,
        options.connection,
        options.connection_init,
        options.connection_rate,
    )
