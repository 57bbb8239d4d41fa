"""What MC-RNN and HO-RNN share: a cell that reads several earlier outputs through connections W_1 ... W_L."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ... import kernels
from ...kernels.dropout import dropout
from ...kernels.multi_channel.specification import CONNECTIONS, GATES
from ..regularization import dropped_parameters
from .contract import RecurrentNetwork, RecurrentOutput
from .registry import Needs, option

CONNECTION_INITS = ("identity", "orthogonal")


@dataclass(frozen=True)
class ConnectedOptions:
    """What MC-RNN and HO-RNN can both be asked for."""

    cell: str = option("lstm", "cell inside the layers", choices=tuple(GATES))
    connection: str = option(
        "state", "connections between outputs (state, Eq. 2) or into the gates (gate)", choices=CONNECTIONS
    )
    connection_rate: float = option(
        1.0,
        "how far an update by Adam moves connections that start as the identity (--connection state); 1: as far as "
        "other weights",
        minimum=0,
        needs=Needs(
            "without --connection state and --connection-init identity",
            lambda options: options.connection == "state" and options.connection_init == "identity",
        ),
    )


def connection_start(default: str) -> Any:
    """The option that says how the connections of a kind start, with the kind's ``default``."""
    return option(
        default,
        "how the connections start (--connection state)",
        choices=CONNECTION_INITS,
        needs=Needs("without --connection state", lambda options: options.connection == "state"),
    )


class ConnectedRNN(RecurrentNetwork[kernels.MultiChannelState]):
    """One layer in one direction.

    Args:
        input_size: D.
        hidden_size: H.
        specification: what it computes. ``connection`` is ``state``: W_j maps outputs to what takes the place of
            h(t - 1) in the cell; or ``gate``: W_j maps outputs to the gates directly, and there is no ``weight_hh``;
            the GRU then interpolates with the mean of the outputs.
        connection_init: how W_j starts in ``state``: as ``identity`` or ``orthogonal``, times ``connection_scale``. In
            ``gate`` it starts as recurrent weights do, times the same.
        connection_rate: where W_j starts as the identity, it is s I + rate (P_j - s I), s being ``connection_scale``
            and P_j ``weight_connection``. Adam moves each element of P_j as far as any other weight, however small its
            gradient: at a rate of 1 four updates of 1e-3 put as much into the other 255 elements of a row (H = 256) as
            its diagonal holds. SGD moves W_j by rate^2 of what it would at 1, since P_j's gradient is rate times W_j's.
            Elsewhere the rate changes nothing.
        connection_scale: of the connections at the start.

    Raises:
        ValueError: a size below 1, a negative rate, or an unknown initialisation.
    """

    dropped_connections: Tensor | None  # W_1 ... W_L where DropConnect drops of them
    has_fixed_steps = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        specification: kernels.MultiChannelSpecification,
        connection_init: str,
        connection_rate: float,
        connection_scale: float = 1.0,
    ) -> None:
        super().__init__()
        if min(input_size, hidden_size) < 1:
            raise ValueError(f"sizes must be at least 1, not {input_size} and {hidden_size}")
        if connection_init not in CONNECTION_INITS:
            raise ValueError(f"unknown initialisation {connection_init!r}; choose from {', '.join(CONNECTION_INITS)}")
        if connection_rate < 0:
            raise ValueError(f"the connections' rate must be at least 0, not {connection_rate}")
        self.connection_init = connection_init
        self.connection_rate = connection_rate
        self.connection_scale = connection_scale
        self.input_size = input_size
        self.hidden_size = self.output_size = hidden_size
        self.specification = specification
        self.cell = specification.cell
        self.connection = specification.connection
        self.has_cell_state = specification.cell == "lstm"

        rows, lags = specification.gates * hidden_size, len(specification.lags)
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size))
        self.bias_ih = nn.Parameter(torch.empty(rows))
        self.bias_hh = nn.Parameter(torch.empty(rows))
        if specification.connection == "state":
            self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size))
            self.weight_connection = nn.Parameter(torch.empty(lags, hidden_size, hidden_size))
        else:
            self.register_parameter("weight_hh", None)
            self.weight_connection = nn.Parameter(torch.empty(lags, rows, hidden_size))
        if specification.has_attention:
            self.attention_v = nn.Parameter(torch.empty(hidden_size, hidden_size + input_size))
            self.attention_r = nn.Parameter(torch.empty(hidden_size))
        else:
            self.register_parameter("attention_v", None)
            self.register_parameter("attention_r", None)
        self.register_buffer("dropped_connections", None, persistent=False)

    @property
    def bound(self) -> float:
        """Recurrent weights start in U(-bound, bound), as in ``torch.nn.LSTMCell``."""
        return 1 / math.sqrt(self.hidden_size)

    @property
    def has_rate(self) -> bool:
        """Whether W_j is not ``weight_connection`` itself."""
        return self.connection_rate != 1 and self.connection == "state" and self.connection_init == "identity"

    @property
    def connections(self) -> Tensor:
        """W_1 ... W_L as the cell reads them (L, H, H); into the gates (L, 4H, H) in the LSTM."""
        if self.dropped_connections is not None:
            return self.dropped_connections
        if not self.has_rate:
            return self.weight_connection
        identity = torch.eye(self.hidden_size, dtype=self.weight_connection.dtype, device=self.weight_connection.device)
        return torch.lerp(identity * self.connection_scale, self.weight_connection, self.connection_rate)

    def drop_connected(self, p: float) -> dict[str, Tensor]:
        """See :meth:`.RecurrentNetwork.drop_connected`. It is W_j that is dropped: a dropped element of P_j would leave
        that of the identity."""
        if not (self.has_rate and self.training and p):
            return super().drop_connected(p)
        return {**dropped_parameters(self, ["weight_hh"], p), "dropped_connections": dropout(self.connections, p)}

    def reset_parameters(self) -> None:
        """The cell as in ``torch.nn.LSTMCell``; W_j as ``connection_init`` says; V of Eq. 6 Xavier."""
        for parameter in (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, self.attention_r):
            if parameter is not None:
                nn.init.uniform_(parameter, -self.bound, self.bound)
        for weight in self.weight_connection:
            if self.connection == "gate":
                nn.init.uniform_(weight, -self.bound * self.connection_scale, self.bound * self.connection_scale)
            elif self.connection_init == "identity":
                nn.init.eye_(weight)
                weight.data.mul_(self.connection_scale)
            else:
                nn.init.orthogonal_(weight, self.connection_scale)
        if self.attention_v is not None:
            nn.init.xavier_uniform_(self.attention_v)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: kernels.MultiChannelState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        """See :meth:`.RecurrentNetwork.forward`. A layer with attention over channels has the detail
        ``channel_attention`` (T, B, C), channels 1 ... C, zero at padding."""
        return RecurrentOutput(*kernels.multi_channel_rnn(self._layer(), x, lengths, state, need_details))

    def recurrent_parameters(self) -> list[str]:
        return ["weight_connection"] if self.weight_hh is None else ["weight_hh", "weight_connection"]

    def step(self, x: Tensor, state: kernels.MultiChannelState) -> tuple[Tensor, kernels.MultiChannelState]:
        return self.stepper(x.size(0))(x, state)

    def stepper(self, batch_size: int) -> kernels.Stepper:
        return kernels.multi_channel_stepper(self._layer(), batch_size)

    def initial_state(
        self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None
    ) -> kernels.MultiChannelState:
        """h(0) = h0 and c(0) = c0 in all channels; all older outputs are zero."""
        return kernels.initial_state(self._layer(), batch_size, h0, c0)

    def extra_repr(self) -> str:
        specification = self.specification
        read = f"channels={specification.channels}" if specification.is_staggered else f"lags={specification.lags}"
        return f"{self.input_size}, {self.hidden_size}, {read}, cell={self.cell!r}, connection={self.connection!r}"

    def _layer(self) -> kernels.MultiChannelLayer:
        parameters = kernels.MultiChannelParameters(
            self.weight_ih,
            self.weight_hh,
            self.bias_ih,
            self.bias_hh,
            self.connections,
            self.attention_v,
            self.attention_r,
        )
        return kernels.MultiChannelLayer(self.specification, parameters)
