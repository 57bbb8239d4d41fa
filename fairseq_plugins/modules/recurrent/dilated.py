"""DilatedRNN: Chang et al. (NeurIPS 2017), "Dilated Recurrent Neural Networks", Section 2.

A layer of dilation s reads its own output of s steps before: c(t) = f(x(t), c(t - s)) (Eq. 1). It is s interleaved
subsequences, which run side by side in the batch through torch's own layers over ceil(T / s) steps (Figure 1, right).
The dilations of a stack grow exponentially, s(l) = M^(l - 1 + l0) (Eq. 3 and 4).

Where the first dilation M^l0 is above 1, the last layer's outputs are fused over time, so that the subsequences meet:
by a causal filter of M^l0 weights, the same for all features (the paper's parameter counts leave no room for more),
which starts as a mean; or by concatenation of the last M^l0 outputs, as in the authors' code. What lies before the
sequence counts as zero there.

What the paper leaves open, and what is done here: the stack has Eq. 4's L layers (Section 2.2 speaks of L - l0 once, a
slip). The GRU is torch's, which applies the reset gate after the recurrent product; TensorFlow's, in the authors' code,
applies it before.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...kernels.checks import checked_start
from . import torch_layers
from .contract import RecurrentNetwork, RecurrentOutput, Step
from .registry import LayerSizes, Needs, option, register_recurrent_kind
from .stack import NetworkStack

FUSIONS = ("convolution", "concat")


class DilatedState(NamedTuple):
    """The state of one layer: a ring of the last s states of each row, which is at a place of its own in it."""

    hidden: Tensor  # (B, s, H)
    cell_state: Tensor  # (B, s, H) for the LSTM, else (B, s, 0)
    phase: Tensor  # (B,) int64: what the next step reads and replaces
    outputs: Tensor  # (B, w - 1, H): before fusion, the last outputs, oldest first; zero before the sequence


class DilatedRNN(RecurrentNetwork[DilatedState]):
    """One layer in one direction.

    Args:
        input_size: D.
        hidden_size: H.
        dilation: s, any number from 1; with 1 it is ``torch.nn.LSTM``, ``GRU`` or ``RNN``.
        cell: ``lstm``, ``gru`` or ``rnn`` (tanh).
        fusion_width: w, how many of the last outputs are fused; 1 for no fusion.
        fusion: ``convolution`` or ``concat``, see the head of this file; concatenated outputs are (T, B, w * H), oldest
            first.

    Attributes:
        fused_steps: how many of a sequence's last outputs are fused, since nothing reads the others, which are zero
            then; None for all. Fusing a waveform's every step would take as long as a layer.

    Raises:
        ValueError: a size below 1, an unknown cell or fusion.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        dilation: int,
        cell: str = "lstm",
        fusion_width: int = 1,
        fusion: str = "convolution",
    ) -> None:
        super().__init__()
        if min(input_size, hidden_size, dilation, fusion_width) < 1:
            raise ValueError(
                f"sizes and dilations must be at least 1, not {input_size}, {hidden_size}, {dilation}, {fusion_width}"
            )
        if cell not in torch_layers.CELLS:
            raise ValueError(f"unknown cell {cell!r}; choose from {', '.join(torch_layers.CELLS)}")
        if fusion not in FUSIONS:
            raise ValueError(f"unknown fusion {fusion!r}; choose from {', '.join(FUSIONS)}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.dilation = dilation
        self.cell = cell
        self.fusion_width = fusion_width
        self.fusion = fusion
        self.fused_steps: int | None = None
        self.output_size = fusion_width * hidden_size if fusion == "concat" else hidden_size
        self.has_cell_state = cell == "lstm"
        self.rnn = torch_layers.CELLS[cell](input_size, hidden_size)
        is_filtered = fusion_width > 1 and fusion == "convolution"
        # The last weight is that of the current output.
        self.fusion_weight = nn.Parameter(torch.full((fusion_width,), 1 / fusion_width)) if is_filtered else None

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: DilatedState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        x, lengths = self.check_sequence(x, lengths, state)
        steps, batch_size, _ = x.shape
        if not steps:
            return self.unread(x, self.initial_state(batch_size) if state is None else state)
        s = self.dilation
        # Where the subsequences are in the rings; None where each is at the place of its number.
        places = None if state is None else (state.phase.unsqueeze(1) + torch.arange(s, device=x.device)) % s
        if state is None:
            state = self.initial_state(batch_size)
        folded_steps = -(-steps // s)
        # Padding by nothing would copy, and so would, backwards, a slice of everything.
        whole = F.pad(x, (0, 0, 0, 0, 0, folded_steps * s - steps)) if steps % s else x
        folded = whole.reshape(folded_steps, s * batch_size, self.input_size)
        real = lengths
        if lengths is None and steps % s:
            real = x.new_full((batch_size,), steps, dtype=torch.long)
        # Subsequence j, from 0, has the tokens j, j + s, j + 2 s ...
        folded_lengths = None if real is None else ((real - self._phases(x) + s - 1) // s).clamp(min=0).flatten()

        output, hidden, cell_state = torch_layers.run(
            self.rnn, folded, folded_lengths, _from_ring(state.hidden, places), _from_ring(state.cell_state, places)
        )
        output = output.view(folded_steps * s, batch_size, self.hidden_size)
        if steps % s:
            output = output[:steps]
        phase = (state.phase + (steps if lengths is None else lengths)) % s
        output, outputs = self._fused(output, lengths, state.outputs)
        hidden, cell_state = (
            _into_ring(state_part.unflatten(0, (s, batch_size)), places) for state_part in (hidden, cell_state)
        )
        return RecurrentOutput(output, DilatedState(hidden, cell_state, phase, outputs), {})

    def recurrent_parameters(self) -> list[str]:
        return ["rnn.weight_hh_l0"]

    def step(self, x: Tensor, state: DilatedState) -> tuple[Tensor, DilatedState]:
        return self.stepper(x.size(0))(x, state)

    def stepper(self, batch_size: int) -> Step[DilatedState]:
        check, run = self.step_check(), torch_layers.stepper(self.rnn, batch_size)

        def step(x: Tensor, state: DilatedState) -> tuple[Tensor, DilatedState]:
            check(x, state)
            rows = torch.arange(x.size(0), device=x.device)
            hidden, cell_state = run(x, state.hidden[rows, state.phase], state.cell_state[rows, state.phase])
            places = (rows, state.phase)
            output, outputs = self._fused_step(hidden, state.outputs)
            return output, DilatedState(
                # Under autocast a step's results are of another type than a state that no step has made.
                state.hidden.index_put(places, hidden.type_as(state.hidden)),
                state.cell_state.index_put(places, cell_state.type_as(state.cell_state)),
                (state.phase + 1) % self.dilation,
                outputs,
            )

        return step

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> DilatedState:
        """All subsequences start from h0 and c0; of an h0 for concatenated outputs (B, w * H), from its newest part."""
        like = self.rnn.weight_hh_l0
        h0 = checked_start("h0", h0, batch_size, self.output_size, like)[:, -self.hidden_size :]
        if self.has_cell_state:
            c0 = checked_start("c0", c0, batch_size, self.output_size, like)[:, -self.hidden_size :]
        else:
            c0 = like.new_zeros(batch_size, 0)
        hidden, cell_state = (start.unsqueeze(1).expand(-1, self.dilation, -1) for start in (h0, c0))
        phase = torch.zeros(batch_size, dtype=torch.long, device=like.device)
        return DilatedState(
            hidden, cell_state, phase, like.new_zeros(batch_size, self.fusion_width - 1, self.hidden_size)
        )

    def extra_repr(self) -> str:
        fusion = f", {self.fusion} of {self.fusion_width}" if self.fusion_width > 1 else ""
        return f"{self.input_size}, {self.hidden_size}, dilation={self.dilation}, cell={self.cell!r}{fusion}"

    def _phases(self, like: Tensor) -> Tensor:
        return torch.arange(self.dilation, device=like.device).unsqueeze(1)

    def _fused(self, output: Tensor, lengths: Tensor | None, before: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. 4's convolution over (T, B, H), or concatenation, and the outputs that go on (B, w - 1, H)."""
        w, steps = self.fusion_width, output.size(0)
        if w == 1:
            return output, before
        whole = torch.cat([before.transpose(0, 1), output])
        unread = 0 if self.fused_steps is None or lengths is not None else max(0, steps - self.fused_steps)
        if unread:
            fused, outputs = self._fused(output[unread:], None, whole[unread : unread + w - 1].transpose(0, 1))
            return F.pad(fused, (0, 0, 0, 0, unread, 0)), outputs
        # Slices: torch's convolutions take several times as long over a single channel, and unfolded windows w times
        # the memory.
        windows = [whole[i : i + steps] for i in range(w)]
        if self.fusion_weight is None:
            fused = torch.cat(windows, dim=-1)
        else:
            products = (weight * window for weight, window in zip(self.fusion_weight.unbind(), windows, strict=True))
            fused = functools.reduce(torch.add, products)
        if lengths is None:
            return fused, whole[steps:].transpose(0, 1)
        time = torch.arange(steps, device=output.device).unsqueeze(1)
        fused = fused.masked_fill((time >= lengths).unsqueeze(-1), 0)
        rows = torch.arange(output.size(1), device=output.device).unsqueeze(1)
        last = lengths.unsqueeze(1) + torch.arange(w - 1, device=output.device)
        return fused, whole[last, rows]

    def _fused_step(self, output: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """The same for one step (B, H)."""
        if self.fusion_width == 1:
            return output, before
        whole = torch.cat([before, output.unsqueeze(1)], dim=1)
        if self.fusion == "concat":
            return whole.flatten(1), whole[:, 1:]
        return torch.einsum("w,bwh->bh", self.fusion_weight, whole), whole[:, 1:]


class DilatedRNNStack(NetworkStack):
    """Layers of any dilations, in one direction, with a fusion at the top where the first dilation is above 1.

    Args:
        input_size: D.
        hidden_sizes: the width of each layer, from the lowest on.
        dilations: of each layer.
        cell: ``lstm``, ``gru`` or ``rnn`` (tanh).
        fusion: ``convolution`` or ``concat``.

    Raises:
        ValueError: not one dilation for each width, none at all, or what :class:`DilatedRNN` does not take.
    """

    def __init__(
        self,
        input_size: int,
        hidden_sizes: Sequence[int],
        dilations: Sequence[int],
        cell: str = "lstm",
        fusion: str = "convolution",
    ) -> None:
        if len(hidden_sizes) != len(dilations) or not dilations:
            raise ValueError(
                f"a stack needs a dilation for each layer, not {len(dilations)} for {len(hidden_sizes)} layers"
            )
        widths = [1] * (len(dilations) - 1) + [dilations[0]]
        sizes = [input_size, *hidden_sizes]
        super().__init__(
            DilatedRNN(size, hidden_size, dilation, cell, width, fusion)
            for size, hidden_size, dilation, width in zip(sizes[:-1], hidden_sizes, dilations, widths, strict=True)
        )


def _from_ring(ring: Tensor, places: Tensor | None) -> Tensor:
    """(B, s, H) -> (s * B, H): the states that the subsequences 0 ... s - 1 start from."""
    ordered = ring if places is None else ring.gather(1, places.unsqueeze(-1).expand_as(ring))
    return ordered.transpose(0, 1).flatten(0, 1)


def _into_ring(states: Tensor, places: Tensor | None) -> Tensor:
    """(s, B, H) -> (B, s, H): the way back of :func:`_from_ring`."""
    ordered = states.transpose(0, 1)
    if places is None:
        return ordered
    index = places.unsqueeze(-1).expand_as(ordered)
    return torch.zeros_like(ordered, memory_format=torch.contiguous_format).scatter(1, index, ordered)


@dataclass(frozen=True)
class DilatedOptions:
    """What DilatedRNN can be asked for."""

    cell: str = option("lstm", "cell inside the layers", choices=tuple(torch_layers.CELLS))
    dilation_base: int = option(
        2,
        "M of Eq. 3: each layer's dilation is this times that of the one below",
        minimum=1,
        needs=Needs("with one layer", layers=2),
    )
    first_dilation: int = option(
        1,
        "dilation of the first layer (Eq. 4); above 1, the last layer's outputs are fused over as many steps",
        minimum=1,
    )
    fusion: str = option(
        "convolution",
        "fusion for a first dilation above 1: one causal filter for all features, or concatenation, as in the "
        "authors' code",
        choices=FUSIONS,
        needs=Needs("without a --first-dilation above 1", lambda options: options.first_dilation > 1),
    )


@register_recurrent_kind("dilated_rnn", DilatedOptions, "dilated RNN (DilatedRNN)")
def _dilated_rnn(options: DilatedOptions, sizes: LayerSizes) -> DilatedRNN:
    dilation = options.first_dilation * options.dilation_base**sizes.layer
    is_last = sizes.layer == len(sizes.hidden_sizes) - 1
    width = options.first_dilation if is_last else 1
    return DilatedRNN(sizes.input_size, sizes.hidden_size, dilation, options.cell, width, options.fusion)
