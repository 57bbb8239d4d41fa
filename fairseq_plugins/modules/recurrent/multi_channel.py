"""MC-RNN, the multi-channel RNN: "Multi-Channel RNN" (AAAI 2019), Section 3, Eq. 1 to 6.

What the paper leaves open, and what is done here: the divisor of Eq. 2 is the in-degree m even where some
predecessors are the zero padding before the sentence; Eq. 1 decides how the channels are staggered; the sums of Eq. 4
and 5 run over the C channels; the LSTM's cell state comes from the channel's immediate predecessor; in the GRU the
temporal input s takes the place of h(t - 1) everywhere. The attended output is not fed back: each channel has its own
recurrence. W_j starts as the identity: a channel then starts as a conventional layer that reads the mean of its block;
of orthogonal W_j (``connection_init``) that is a mean of rotations. Eq. 2 is read as it is printed (``connection``:
``state``); ``gate`` alone fits the steps of the paper's column of parameters, and starts no earlier on real text
(docs/notes/starting_scales.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kernels import MultiChannelSpecification
from .connected import ConnectedOptions, ConnectedRNN, connection_start
from .registry import LayerSizes, option, register_recurrent_kind


@dataclass(frozen=True)
class MultiChannelOptions(ConnectedOptions):
    """What MC-RNN can be asked for."""

    channels: int = option(3, "channels: block size minus one", minimum=1)
    connection_init: str = connection_start("identity")


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
        connection_init, connection_rate: how W_j starts and how fast it learns; see :class:`.ConnectedRNN`.

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
        super().__init__(input_size, hidden_size, specification, connection_init, connection_rate)
        self.channels = channels
        self.reset_parameters()


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
