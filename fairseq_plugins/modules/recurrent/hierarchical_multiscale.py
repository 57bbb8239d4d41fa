"""HM-RNN: Chung, Ahn and Bengio (2017), "Hierarchical Multiscale Recurrent Neural Networks", with LSTM cells.

Level l of L finds boundaries z(t, l) in what it reads. Where the level below finds one, a level reads it (UPDATE);
where it does not, it stands still (COPY); after a boundary of its own, which the level above has read, it starts anew
(FLUSH):

    [f, i, o, g, z~] = U_l h(t-1, l) + z(t-1, l) T_l h(t-1, l+1) + z(t, l-1) W_l h(t, l-1) + b_l
    c(t, l) = z (i * g) + (1 - z) (b (f * c' + i * g) + (1 - b) c')
    h(t, l) = (z + (1 - z) b) (o * tanh(c(t, l))) + (1 - z) (1 - b) h'

with z = z(t-1, l), b = z(t, l-1), c' and h' those of t - 1. z(t, 0) = 1 and h(t, 0) = x(t); the top level has no
detector and nothing above it. These products are kept, rather than choices between the three, because the gradient of z
runs through them. z(t, l) is 1 where the hard sigmoid max(0, min(1, (a z~ + 1) / 2)) is above 0.5, recomputed at every
step, COPY included; its step has the gradient 1 (straight through). The slope a grows from epoch to epoch.

The output is ReLU(sum over l of g(t, l) E_l h(t, l)) with g(t, l) = sigmoid(w_l . [h(t, 1); ...; h(t, L)]).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...kernels.checks import checked_start
from ...kernels.padding import padding_mask
from ..regularization import LockedDropout
from .contract import RecurrentNetwork, RecurrentOutput, Step
from .registry import LayerSizes, register_recurrent_kind

SLOPE_GROWTH = 0.04
"""What an epoch adds to the slope, which starts at 1."""
LARGEST_SLOPE = 5.0


class HierarchicalMultiscaleState(NamedTuple):
    """The state of all levels."""

    hidden: Tensor  # (B, L, H)
    cell_state: Tensor  # (B, L, H)
    boundary: Tensor  # z (B, L - 1), 0 or 1; the top level has none


class HierarchicalMultiscaleRNN(RecurrentNetwork[HierarchicalMultiscaleState]):
    """All levels of an HM-RNN in one direction.

    Args:
        input_size: D.
        hidden_sizes: the width H of each level, all equal.
        dropout: what a level's output goes through on its way up.

    Attributes:
        slope: a of the hard sigmoid, kept in checkpoints; :meth:`on_epoch` sets it.

    Raises:
        ValueError: no level, a size below 1, or levels of different widths.
    """

    slope: Tensor

    def __init__(self, input_size: int, hidden_sizes: Sequence[int], dropout: nn.Module | None = None) -> None:
        super().__init__()
        if not hidden_sizes or min(input_size, *hidden_sizes) < 1:
            raise ValueError(f"sizes must be at least 1, not {input_size} and {list(hidden_sizes)}")
        if len(set(hidden_sizes)) > 1:
            raise ValueError(f"the levels of an HM-RNN have one width, not {', '.join(map(str, hidden_sizes))}")
        self.input_size = input_size
        self.levels = len(hidden_sizes)
        self.hidden_size = self.output_size = size = hidden_sizes[0]
        self.has_cell_state = True
        self.dropout = nn.Identity() if dropout is None else dropout
        self.register_buffer("slope", torch.ones(()))

        # Gates f, i, o, g of H rows each, then the detector's row.
        rows = [4 * size + 1] * (self.levels - 1) + [4 * size]
        below = [input_size] + [size] * (self.levels - 1)
        self.weight_recurrent = nn.ParameterList(torch.empty(n, size) for n in rows)
        self.weight_top_down = nn.ParameterList(torch.empty(n, size) for n in rows[:-1])
        self.weight_bottom_up = nn.ParameterList(torch.empty(n, d) for n, d in zip(rows, below, strict=True))
        self.bias = nn.ParameterList(torch.empty(n) for n in rows)
        self.output_gate = nn.Parameter(torch.empty(self.levels, self.levels * size))
        self.output_weight = nn.Parameter(torch.empty(self.levels, size, size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As in ``torch.nn.LSTM``; the detectors' biases are 0."""
        bound = 1 / math.sqrt(self.hidden_size)
        for name, parameter in self.named_parameters():
            nn.init.uniform_(parameter, -bound, bound)
            if name.startswith("bias."):
                nn.init.zeros_(parameter[4 * self.hidden_size :])

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: HierarchicalMultiscaleState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        """See :meth:`.RecurrentNetwork.forward`. The detail ``boundaries`` (T, B, L - 1) is z, zero at padding."""
        x, lengths = self.check_sequence(x, lengths, state)
        if state is None:
            state = self.initial_state(x.size(1))
        if not x.size(0):
            return self.unread(x, state)
        step = self._step_function()
        states = [state]
        for from_input in F.linear(x, self.weight_bottom_up[0], self.bias[0]).unbind(0):
            states.append(step(from_input, states[-1]))
        hidden = torch.stack([level.hidden for level in states[1:]])
        output = self._output(hidden)
        boundaries = torch.stack([level.boundary for level in states[1:]])
        if lengths is None:
            last = states[-1]
        else:
            rows = torch.arange(x.size(1), device=x.device)
            last = HierarchicalMultiscaleState(
                *(torch.stack(part)[lengths, rows] for part in zip(*states, strict=True))
            )
            padding = padding_mask(lengths, x.size(0)).unsqueeze(-1)
            output, boundaries = output.masked_fill(padding, 0), boundaries.masked_fill(padding, 0)
        return RecurrentOutput(output, last, {"boundaries": boundaries} if need_details and self.levels > 1 else {})

    def recurrent_parameters(self) -> list[str]:
        return [
            f"{weights}.{level}"
            for weights in ("weight_recurrent", "weight_top_down")
            for level in range(len(getattr(self, weights)))
        ]

    def step(self, x: Tensor, state: HierarchicalMultiscaleState) -> tuple[Tensor, HierarchicalMultiscaleState]:
        return self.stepper(x.size(0))(x, state)

    def stepper(self, batch_size: int) -> Step[HierarchicalMultiscaleState]:
        check, step = self.step_check(), self._step_function()

        def one_step(x: Tensor, state: HierarchicalMultiscaleState) -> tuple[Tensor, HierarchicalMultiscaleState]:
            check(x, state)
            state = step(F.linear(x, self.weight_bottom_up[0], self.bias[0]), state)
            return self._output(state.hidden), state

        return one_step

    def initial_state(
        self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None
    ) -> HierarchicalMultiscaleState:
        """h0 and c0 in every level, and no boundaries."""
        like = self.output_gate
        hidden, cell_state = (
            checked_start(name, start, batch_size, self.hidden_size, like).unsqueeze(1).expand(-1, self.levels, -1)
            for name, start in (("h0", h0), ("c0", c0))
        )
        return HierarchicalMultiscaleState(hidden, cell_state, like.new_zeros(batch_size, self.levels - 1))

    def on_epoch(self, epoch: int) -> None:
        """The slope is min(5, 1 + 0.04 epoch)."""
        self.slope.fill_(min(LARGEST_SLOPE, 1 + SLOPE_GROWTH * epoch))

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, levels={self.levels}"

    def _step_function(self) -> Callable[[Tensor, HierarchicalMultiscaleState], HierarchicalMultiscaleState]:
        """From a step's W_1 x(t) + b_1 (B, 4H + 1) and a state to the next state. All that a level multiplies is in
        one matrix, which is put together here for all steps."""
        tops = [*self.weight_top_down, None]
        belows = [None, *list(self.weight_bottom_up)[1:]]
        weights = [
            torch.cat([part for part in parts if part is not None], dim=1)
            for parts in zip(self.weight_recurrent, tops, belows, strict=True)
        ]
        biases = list(self.bias)
        # Each level that is read from above has a mask of its own.
        dropouts: list[Callable[[Tensor], Tensor]] = [
            self.dropout.for_steps() if isinstance(self.dropout, LockedDropout) else self.dropout for _ in biases
        ]

        def step(from_input: Tensor, state: HierarchicalMultiscaleState) -> HierarchicalMultiscaleState:
            before, memories = state.hidden.unbind(1), state.cell_state.unbind(1)
            zs = [*state.boundary.unsqueeze(-1).unbind(1), None]
            hidden: list[Tensor] = []
            cell_state: list[Tensor] = []
            boundary: list[Tensor] = []
            b = None
            for level in range(self.levels):
                z = zs[level]
                read = [before[level]]
                if z is not None:
                    read.append(z * before[level + 1])
                if b is not None:
                    read.append(b * dropouts[level](hidden[-1]))
                added = from_input if level == 0 else biases[level]
                product = F.linear(torch.cat(read, dim=-1), weights[level]) + added
                h, c = self._cell(product, before[level], memories[level], z, b)
                hidden.append(h)
                cell_state.append(c)
                if z is not None:
                    hard = ((self.slope * product[:, -1:] + 1) / 2).clamp(0, 1)
                    b = _straight_through(hard)
                    boundary.append(b)
            return HierarchicalMultiscaleState(
                torch.stack(hidden, dim=1),
                torch.stack(cell_state, dim=1),
                torch.cat(boundary, dim=-1) if boundary else state.boundary,
            )

        return step

    def _cell(self, product: Tensor, h: Tensor, c: Tensor, z: Tensor | None, b: Tensor | None) -> tuple[Tensor, Tensor]:
        """One level's h and c out of those before; z is None (0) in the top level, b (1) in the lowest."""
        gates = product[:, : 4 * self.hidden_size]
        f, i, o = torch.sigmoid(gates[:, : 3 * self.hidden_size]).chunk(3, dim=-1)
        new = i * torch.tanh(gates[:, 3 * self.hidden_size :])
        z = new.new_zeros(()) if z is None else z
        b = new.new_ones(()) if b is None else b
        next_c = z * new + (1 - z) * (b * (f * c + new) + (1 - b) * c)
        next_h = (z + (1 - z) * b) * (o * torch.tanh(next_c)) + (1 - z) * (1 - b) * h
        return next_h, next_c

    def _output(self, hidden: Tensor) -> Tensor:
        """hidden (..., L, H) -> output (..., H)."""
        gates = torch.sigmoid(F.linear(hidden.flatten(-2), self.output_gate))
        return torch.relu(torch.einsum("...lh,lkh->...k", gates.unsqueeze(-1) * hidden, self.output_weight))


def _straight_through(x: Tensor) -> Tensor:
    """1 above 0.5, else 0; its gradient is taken as 1."""
    return (x > 0.5).type_as(x) + (x - x.detach())


@dataclass(frozen=True)
class HierarchicalMultiscaleOptions:
    """Nothing can be asked for."""


@register_recurrent_kind(
    "hm_rnn", HierarchicalMultiscaleOptions, "hierarchical multiscale RNN (HM-RNN)", handles_depth=True
)
def _hierarchical_multiscale_rnn(
    options: HierarchicalMultiscaleOptions, sizes: LayerSizes
) -> HierarchicalMultiscaleRNN:
    return HierarchicalMultiscaleRNN(sizes.input_size, sizes.hidden_sizes, sizes.dropout)
