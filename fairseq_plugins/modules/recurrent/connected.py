"""What MC-RNN and HO-RNN share: a cell that reads several earlier outputs through connections W_1 ... W_L."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ... import kernels
from ...kernels.multi_channel.specification import CONNECTIONS, GATES
from .contract import RecurrentNetwork, RecurrentOutput
from .registry import option


@dataclass(frozen=True)
class ConnectedOptions:
    """What MC-RNN and HO-RNN can both be asked for."""

    cell: str = option("lstm", "cell inside the layers", choices=tuple(GATES))
    connection: str = option(
        "state", "connections between outputs (state, Eq. 2) or into the gates (gate)", choices=CONNECTIONS
    )


class ConnectedRNN(RecurrentNetwork):
    """One layer in one direction. A subclass says how the connections start.

    Args:
        input_size: D.
        hidden_size: H.
        specification: what it computes. ``connection`` is ``state``: W_j maps outputs to what takes the place of
            h(t - 1) in the cell; or ``gate``: W_j maps outputs to the gates directly, and there is no ``weight_hh``;
            the GRU then interpolates with the mean of the outputs.

    Raises:
        ValueError: a size below 1.
    """

    def __init__(self, input_size: int, hidden_size: int, specification: kernels.MultiChannelSpecification) -> None:
        super().__init__()
        if min(input_size, hidden_size) < 1:
            raise ValueError(f"sizes must be at least 1, not {input_size} and {hidden_size}")
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

    @property
    def bound(self) -> float:
        """Recurrent weights start in U(-bound, bound), as in ``torch.nn.LSTMCell``."""
        return 1 / math.sqrt(self.hidden_size)

    def reset_cell(self) -> None:
        """The cell, and r of Eq. 6 where there is attention, start as in ``torch.nn.LSTMCell``."""
        for parameter in (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, self.attention_r):
            if parameter is not None:
                nn.init.uniform_(parameter, -self.bound, self.bound)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: kernels.MultiChannelState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        """See :meth:`.RecurrentNetwork.forward`. A layer with attention over channels has the detail
        ``channel_attention`` (T, B, C), channels 1 ... C, zero at padding."""
        if state is None:
            state = self.initial_state(x.size(1))
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
            self.weight_connection,
            self.attention_v,
            self.attention_r,
        )
        return kernels.MultiChannelLayer(self.specification, parameters)
