"""HO-RNN, the higher-order RNN: Soltani and Jiang (2016), "Higher order recurrent neural networks".

Every step reads the last K outputs: s(t - 1) = sum over j = 1 ... K of W_j h(t - j), then the cell reads x(t) and
s(t - 1). It is the recurrence of MC-RNN with one channel that is connected to all K predecessors at every step, without
the divisor of Eq. 2 and without attention over channels.

Any K lags can be read instead of the last ones: the skip RNN that DilatedRNN is compared with (Chang et al. 2017) reads
h(t - 1) and h(t - s), each through weights of its own: ``lags=(1, s), cell="rnn", connection="gate"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...kernels import MultiChannelSpecification
from .connected import ConnectedOptions, ConnectedRNN, connection_start
from .registry import LayerSizes, option, register_recurrent_kind


@dataclass(frozen=True)
class HigherOrderOptions(ConnectedOptions):
    """What HO-RNN can be asked for."""

    order: int = option(3, "earlier outputs that are read at every step, the last ones", minimum=1)
    connection_init: str = connection_start("orthogonal")
    lags: str | None = option(None, "which earlier outputs are read at every step, in the place of --order: 1,256")


class HigherOrderRNN(ConnectedRNN):
    """One HO-RNN layer in one direction.

    Args:
        input_size: D.
        hidden_size: H.
        order: K, any number from 1: the lags are 1 ... K.
        cell: ``lstm``, ``gru`` or ``rnn`` (tanh).
        connection: ``state``, or ``gate``, the original's form; see :class:`ConnectedRNN`.
        lags: any others, ascending; ``order`` is then their number.
        connection_init, connection_rate: how W_j starts, divided by K, and how fast it learns; see
            :class:`.ConnectedRNN`.

    Raises:
        ValueError: a size below 1, a negative rate, an unknown cell, connection or initialisation, or lags that are not
            positive and ascending.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        order: int = 3,
        cell: str = "lstm",
        connection: str = "state",
        lags: Sequence[int] | None = None,
        connection_init: str = "orthogonal",
        connection_rate: float = 1.0,
    ) -> None:
        if lags is None:
            lags = range(1, order + 1)
        specification = MultiChannelSpecification.higher_order(cell, connection, lags)
        scale = 1 / len(specification.lags)
        super().__init__(input_size, hidden_size, specification, connection_init, connection_rate, scale)
        self.order = len(specification.lags)
        self.reset_parameters()


@register_recurrent_kind("ho_rnn", HigherOrderOptions, "higher-order RNN (HO-RNN)")
def _higher_order_rnn(options: HigherOrderOptions, sizes: LayerSizes) -> HigherOrderRNN:
    return HigherOrderRNN(
        sizes.input_size,
        sizes.hidden_size,
        options.order,
        options.cell,
        options.connection,
        None if options.lags is None else _numbers(options.lags),
        options.connection_init,
        options.connection_rate,
    )


def _numbers(lags: str) -> list[int]:
    try:
        return [int(lag) for lag in lags.split(",")]
    except ValueError:
        raise ValueError(f"lags are numbers between commas, such as 1,256, not {lags!r}") from None
