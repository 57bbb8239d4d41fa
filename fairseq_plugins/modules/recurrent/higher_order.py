"""HO-RNN, the higher-order RNN: Soltani and Jiang (2016), "Higher order recurrent neural networks".

Every step reads the last K outputs: s(t - 1) = sum over j = 1 ... K of W_j h(t - j), then the cell reads x(t) and
s(t - 1). It is the recurrence of MC-RNN with one channel that is connected to all K predecessors at every step, without
the divisor of Eq. 2 and without attention over channels.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from .connected import ConnectedOptions, ConnectedRNN
from .registry import LayerSizes, option, register_recurrent_kind


@dataclass(frozen=True)
class HigherOrderOptions(ConnectedOptions):
    """What HO-RNN can be asked for."""

    order: int = option(3, "earlier outputs that are read at every step", minimum=1)


class HigherOrderRNN(ConnectedRNN):
    """One HO-RNN layer in one direction.

    Args:
        input_size: D.
        hidden_size: H.
        order: K, any number from 1.
        cell: ``lstm``, ``gru`` or ``rnn`` (tanh).
        connection: ``state``, or ``gate``, the original's form; see :class:`ConnectedRNN`.

    Raises:
        ValueError: a size below 1, or an unknown cell or connection.
    """

    def __init__(
        self, input_size: int, hidden_size: int, order: int = 3, cell: str = "lstm", connection: str = "state"
    ) -> None:
        super().__init__(input_size, hidden_size, order, cell, connection)
        self.order = order
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The cell as in ``torch.nn.LSTMCell``; W_j orthogonal, in ``gate`` as recurrent weights, divided by K."""
        for parameter in (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh):
            if parameter is not None:
                nn.init.uniform_(parameter, -self.bound, self.bound)
        for weight in self.weight_connection:
            if self.connection == "gate":
                nn.init.uniform_(weight, -self.bound / self.order, self.bound / self.order)
            else:
                nn.init.orthogonal_(weight, 1 / self.order)

    def extra_repr(self) -> str:
        return (
            f"{self.input_size}, {self.hidden_size}, order={self.order}, cell={self.cell!r}, "
            f"connection={self.connection!r}"
        )


@register_recurrent_kind("ho_rnn", HigherOrderOptions, "higher-order RNN (HO-RNN)")
def _higher_order_rnn(options: HigherOrderOptions, sizes: LayerSizes) -> HigherOrderRNN:
    return HigherOrderRNN(sizes.input_size, sizes.hidden_size, options.order, options.cell, options.connection)
