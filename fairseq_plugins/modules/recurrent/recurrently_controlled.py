"""RCRN: Tay, Luu and Hui (NeurIPS 2018), "Recurrently Controlled Recurrent Networks", Section 3.

Three recurrent networks read the same input: two controllers, whose outputs become the forget gate and the output gate
of a fourth cell, and a listener, whose output is what that cell reads:

    c4(t) = sigmoid(h1(t)) * c4(t-1) + (1 - sigmoid(h1(t))) * h3(t),  c4(0) = 0   (Eq. 15)
    h4(t) = sigmoid(h2(t)) * c4(t)                                                (Eq. 16)

What the paper leaves open, and what is done here: Eq. 16 prints h2 without the sigmoid, against the sentence under it
and the authors' code (``output_gate``: ``sigmoid``, or ``linear`` as printed). In two directions Eq. 15 runs once, from
left to right, over the features of both, as in the authors' code. It is computed in float32 at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...kernels.checks import checked_start
from ...kernels.forget_scan import forget_scan
from ...kernels.padding import padding_mask
from . import torch_layers
from .contract import RecurrentNetwork, RecurrentOutput, Step
from .registry import LayerSizes, option, register_recurrent_kind

CELLS = ("lstm", "gru")
OUTPUT_GATES = ("sigmoid", "linear")


class RecurrentlyControlledState(NamedTuple):
    """The state of one layer in one direction: of the forget controller, the output controller and the listener, in
    this order, and of the controlled cell."""

    hidden: Tensor  # (B, 3, H)
    cell_state: Tensor  # (B, 3, H) for the LSTM, else (B, 3, 0)
    controlled: Tensor  # c4 (B, H), float32 at least


class RecurrentlyControlledRNN(RecurrentNetwork[RecurrentlyControlledState]):
    """One RCRN layer, which has the parameters of three layers of its cell.

    Args:
        input_size: D.
        hidden_size: H, of each direction.
        cell: ``lstm`` or ``gru``, of all three networks.
        bidirectional: all three networks read in both directions; the output is (T, B, 2 * H).
        output_gate: ``sigmoid``: sigmoid(h2), as the paper's text and the authors' code have it; ``linear``: h2, as
            Eq. 16 is printed.

    Raises:
        ValueError: a size below 1, an unknown cell or output gate.
    """

    has_fixed_steps = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        cell: str = "lstm",
        bidirectional: bool = True,
        output_gate: str = "sigmoid",
    ) -> None:
        super().__init__()
        if min(input_size, hidden_size) < 1:
            raise ValueError(f"sizes must be at least 1, not {input_size} and {hidden_size}")
        if cell not in CELLS:
            raise ValueError(f"unknown cell {cell!r}; choose from {', '.join(CELLS)}")
        if output_gate not in OUTPUT_GATES:
            raise ValueError(f"unknown output gate {output_gate!r}; choose from {', '.join(OUTPUT_GATES)}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.output_size = 2 * hidden_size if bidirectional else hidden_size
        self.cell = cell
        self.bidirectional = bidirectional
        self.output_gate = output_gate
        self.has_cell_state = cell == "lstm"
        self.is_steppable = not bidirectional
        make = torch_layers.CELLS[cell]
        self.forget_controller = make(input_size, hidden_size, bidirectional=bidirectional)
        self.output_controller = make(input_size, hidden_size, bidirectional=bidirectional)
        self.listener = make(input_size, hidden_size, bidirectional=bidirectional)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: RecurrentlyControlledState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        """See :meth:`.RecurrentNetwork.forward`.

        Raises:
            ValueError: x, lengths or state do not fit; or a state in two directions, where there is none to go on from.
        """
        if self.bidirectional and state is not None:
            raise ValueError("a bidirectional RCRN cannot go on from a state")
        x, lengths = self.check_sequence(x, lengths, state)
        if state is None and not self.bidirectional:
            state = self.initial_state(x.size(1))
        if not x.size(0):
            return self.unread(x, state)
        if state is None:  # in two directions
            h1, h2, h3 = (torch_layers.run_both_directions(rnn, x, lengths) for rnn in self._networks())
            output = self._gated(h2, forget_scan(torch.sigmoid(h1), h3))
            return RecurrentOutput(_without_padding(output, lengths), None, {})

        results = [
            torch_layers.run(rnn, x, lengths, *start)
            for rnn, *start in zip(self._networks(), state.hidden.unbind(1), state.cell_state.unbind(1), strict=True)
        ]
        (h1, h2, h3), hidden, cell_state = zip(*results, strict=True)
        controlled = forget_scan(torch.sigmoid(h1), h3, state.controlled)
        output = _without_padding(self._gated(h2, controlled), lengths)
        if lengths is None:
            last = controlled[-1]
        else:
            rows = torch.arange(x.size(1), device=x.device)
            last = torch.cat([state.controlled.unsqueeze(0), controlled])[lengths, rows]
        stacked = torch.stack(hidden, dim=1), torch.stack(cell_state, dim=1)
        return RecurrentOutput(output, RecurrentlyControlledState(*stacked, last), {})

    def recurrent_parameters(self) -> list[str]:
        suffixes = ("", "_reverse") if self.bidirectional else ("",)
        networks = ("forget_controller", "output_controller", "listener")
        return [f"{network}.weight_hh_l0{suffix}" for network in networks for suffix in suffixes]

    def summaries(self, result: RecurrentOutput, lengths: Tensor | None) -> list[Tensor]:
        """In two directions: the forward features of h4 at the last real token, the backward ones at the first."""
        [last] = super().summaries(result, lengths)
        if not self.bidirectional or not result.output.size(0):
            return [last]
        return [torch.cat([last[:, : self.hidden_size], result.output[0, :, self.hidden_size :]], dim=-1)]

    def step(self, x: Tensor, state: RecurrentlyControlledState) -> tuple[Tensor, RecurrentlyControlledState]:
        return self.stepper(x.size(0))(x, state)

    def stepper(self, batch_size: int) -> Step[RecurrentlyControlledState]:
        if self.bidirectional:
            raise TypeError("an RCRN in two directions does not run step by step")
        check = self.step_check()
        steps = [torch_layers.stepper(rnn, batch_size) for rnn in self._networks()]

        def step(x: Tensor, state: RecurrentlyControlledState) -> tuple[Tensor, RecurrentlyControlledState]:
            check(x, state)
            starts = zip(state.hidden.unbind(1), state.cell_state.unbind(1), strict=True)
            hidden, cell_state = zip(*(run(x, *start) for run, start in zip(steps, starts, strict=True)), strict=True)
            h1, h2, h3 = hidden
            gate = torch.sigmoid(h1).type_as(state.controlled)
            controlled = gate * state.controlled + (1 - gate) * h3  # Eq. 15
            stacked = torch.stack(hidden, dim=1), torch.stack(cell_state, dim=1)
            return self._gated(h2, controlled), RecurrentlyControlledState(*stacked, controlled)

        return step

    def initial_state(
        self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None
    ) -> RecurrentlyControlledState:
        """All three networks start from h0 and c0, the controlled cell from zero."""
        like = self.listener.weight_hh_l0
        h0 = checked_start("h0", h0, batch_size, self.hidden_size, like)
        if self.has_cell_state:
            c0 = checked_start("c0", c0, batch_size, self.hidden_size, like)
        else:
            c0 = like.new_zeros(batch_size, 0)
        controlled = like.new_zeros(batch_size, self.hidden_size, dtype=torch.promote_types(like.dtype, torch.float32))
        hidden, cell_state = (start.unsqueeze(1).expand(-1, 3, -1) for start in (h0, c0))
        return RecurrentlyControlledState(hidden, cell_state, controlled)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, cell={self.cell!r}, output_gate={self.output_gate!r}"

    def _networks(self) -> tuple[nn.RNNBase, nn.RNNBase, nn.RNNBase]:
        return self.forget_controller, self.output_controller, self.listener

    def _gated(self, h2: Tensor, controlled: Tensor) -> Tensor:
        """Eq. 16, in the precision of ``h2``."""
        gate = torch.sigmoid(h2) if self.output_gate == "sigmoid" else h2
        return (gate * controlled).type_as(h2)


def _without_padding(output: Tensor, lengths: Tensor | None) -> Tensor:
    """The output (T, B, ...), zero at padding."""
    if lengths is None:
        return output
    return output.masked_fill(padding_mask(lengths, output.size(0)).unsqueeze(-1), 0)


@dataclass(frozen=True)
class RecurrentlyControlledOptions:
    """What RCRN can be asked for."""

    cell: str = option("lstm", "cell inside the layers", choices=CELLS)
    rcrn_output_gate: str = option(
        "sigmoid", "output gate of Eq. 16: sigmoid, as the text says, or linear, as printed", choices=OUTPUT_GATES
    )


@register_recurrent_kind(
    "rcrn", RecurrentlyControlledOptions, "recurrently controlled recurrent network (RCRN)", handles_directions=True
)
def _recurrently_controlled_rnn(options: RecurrentlyControlledOptions, sizes: LayerSizes) -> RecurrentlyControlledRNN:
    return RecurrentlyControlledRNN(
        sizes.input_size, sizes.hidden_size, options.cell, sizes.direction == "both", options.rcrn_output_gate
    )
