"""The exported form of recurrent layers: what all steps have in common before and after, and one step in between. A
decoder runs the step, everything else a loop of it (``loops.py``).

Symbols: B batch, T time steps, D input size, H hidden size.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import InputError
from ..kernels.padding import padding_mask
from ..modules.recurrent import torch_layers
from ..modules.recurrent.connected import ConnectedRNN
from ..modules.recurrent.contract import RecurrentNetwork, RecurrentOutput, RecurrentState
from ..modules.recurrent.conventional import ConventionalRNN
from ..modules.recurrent.dilated import DilatedRNN
from ..modules.recurrent.hierarchical_multiscale import HierarchicalMultiscaleRNN, HierarchicalMultiscaleState
from ..modules.recurrent.higher_order import HigherOrderRNN
from ..modules.recurrent.multi_channel import MultiChannelRNN
from ..modules.recurrent.recurrently_controlled import RecurrentlyControlledRNN
from ..modules.recurrent.stack import NetworkStack, StackOutput
from .loops import Loop, Tensors


class ExportedNetwork(RecurrentNetwork[RecurrentState]):
    """A recurrent layer as it is exported.

    Args:
        layer: of which it has the parameters.
        is_backward: whether it reads from the last token to the first.
    """

    def __init__(self, layer: RecurrentNetwork[Any], is_backward: bool = False) -> None:
        super().__init__()
        self.input_size, self.output_size = layer.input_size, layer.output_size
        self.has_cell_state, self.is_steppable = layer.has_cell_state, layer.is_steppable
        self.is_backward = is_backward
        self.loop = Loop(self.step_of, is_backward, self)

    def read(self, x: Tensor) -> Tensors:
        """What steps read: x (..., D) -> tensors (..., any). Every product that needs no state belongs here."""
        return (x,)

    def step_of(self, read: Tensors, state: RecurrentState) -> tuple[Tensors, RecurrentState]:
        """One step: see :data:`StepFunction`."""
        raise NotImplementedError

    def output(self, x: Tensor, step_outputs: Tensors) -> Tensor:
        """The layer's output (..., output_size) of x (..., D) and what steps gave (..., any)."""
        return step_outputs[0]

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: RecurrentState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        """See :meth:`.RecurrentNetwork.forward`; but it is the output that goes backwards, not x."""
        is_real = _real(x, lengths)
        start = self.initial_state(x.size(1)) if state is None else state
        final, step_outputs = self.loop(start, self.read(x), is_real)
        return RecurrentOutput(self.output(x, step_outputs) * is_real, final, {})

    def summaries(self, result: RecurrentOutput, lengths: Tensor | None) -> list[Tensor]:
        return [result.output[0]] if self.is_backward else super().summaries(result, lengths)

    def recurrent_parameters(self) -> list[str]:
        return []

    def step(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        step_outputs, state = self.step_of(self.read(x), state)
        return self.output(x, step_outputs), state


class Cell(nn.Module):
    """The gates of an LSTM, a GRU or a tanh layer, whatever multiplies the earlier outputs."""

    def __init__(self, kind: str, bias_ih: Tensor, bias_hh: Tensor) -> None:
        super().__init__()
        self.kind = kind
        size = bias_ih.size(0) // {"lstm": 4, "gru": 3, "rnn": 1}[kind]
        self.size = size
        inside = torch.zeros_like(bias_hh)
        if kind == "gru":  # the candidate's bias is inside the reset gate
            inside[2 * size :] = bias_hh[2 * size :]
        self.bias = nn.Parameter(bias_ih + bias_hh - inside)
        self.candidate_bias = nn.Parameter(bias_hh[2 * size :].clone()) if kind == "gru" else None

    def forward(self, gates: Tensor, recurrent: Tensor, memory: Sequence[Tensor], interpolated: Tensor) -> list[Tensor]:
        """One step.

        Args:
            gates: the input's share, with :attr:`bias` (..., G H).
            recurrent: the earlier outputs' share (..., G H).
            memory: of the LSTM [c (..., H)].
            interpolated: what the GRU keeps of earlier outputs (..., H).

        Returns:
            h (..., H), and of the LSTM c.
        """
        if self.kind == "lstm":
            i, f, g, o = (gates + recurrent).chunk(4, dim=-1)
            c = torch.sigmoid(f) * memory[0] + torch.sigmoid(i) * torch.tanh(g)
            return [torch.sigmoid(o) * torch.tanh(c), c]
        if self.candidate_bias is None:
            return [torch.tanh(gates + recurrent)]
        from_input, from_history = (
            gates.split([2 * self.size, self.size], -1),
            recurrent.split([2 * self.size, self.size], -1),
        )
        r, z = torch.sigmoid(from_input[0] + from_history[0]).chunk(2, dim=-1)
        n = torch.tanh(from_input[1] + r * (from_history[1] + self.candidate_bias))
        return [n + z * (interpolated - n)]


class ConventionalCell(nn.Module):
    """``torch.nn.LSTM``, ``GRU`` or ``RNN``, one direction of it, as a step.

    Args:
        rnn: the layer.
        suffix: of its parameters' names.
    """

    def __init__(self, rnn: nn.RNNBase, suffix: str = "") -> None:
        super().__init__()
        weight_ih, weight_hh, bias_ih, bias_hh = (
            getattr(rnn, f"{name}_l0{suffix}").detach() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        self.cell = Cell(torch_layers.cell_of(rnn), bias_ih, bias_hh)
        self.weight_ih, self.weight_hh = nn.Parameter(weight_ih), nn.Parameter(weight_hh)

    def read(self, x: Tensor) -> Tensor:
        """x (..., D) -> the input's share of the gates (..., G H)."""
        return F.linear(x, self.weight_ih, self.cell.bias)

    def forward(self, read: Tensors, state: RecurrentState) -> tuple[Tensors, RecurrentState]:
        """See :data:`StepFunction`; the state is h and, of the LSTM, c."""
        after = self.cell(read[0], F.linear(state[0], self.weight_hh), state[1:], state[0])
        return (after[0],), tuple(after)

    def start(self, rows: int) -> RecurrentState:
        """Zeros."""
        return tuple(self.weight_hh.new_zeros(rows, self.cell.size) for _ in range(1 + (self.cell.kind == "lstm")))


class ExportedConventionalRNN(ExportedNetwork):
    """``lstm``, ``gru``, ``rnn``."""

    def __init__(self, layer: ConventionalRNN, is_backward: bool = False) -> None:
        super().__init__(layer, is_backward)
        self.cell = ConventionalCell(layer.rnn)

    def read(self, x: Tensor) -> Tensors:
        return (self.cell.read(x),)

    def step_of(self, read: Tensors, state: RecurrentState) -> tuple[Tensors, RecurrentState]:
        return cast("tuple[Tensors, RecurrentState]", self.cell(read, state))

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> RecurrentState:
        return _started(self.cell.start(batch_size), h0, c0)


class ExportedConnectedRNN(ExportedNetwork):
    """``mc_rnn``, ``ho_rnn``: the state is the history (B, L, C slots, H) and, of the LSTM, c (B, C slots, H); see
    ``kernels/multi_channel/specification.py``. Attention over channels is outside the loop."""

    divisors: Tensor
    outputs_read: Tensor

    def __init__(self, layer: ConnectedRNN, is_backward: bool = False) -> None:
        super().__init__(layer, is_backward)
        specification = self.specification = layer.specification
        self.cell = Cell(specification.cell, layer.bias_ih.detach(), layer.bias_hh.detach())
        self.weight_ih = nn.Parameter(layer.weight_ih.detach())
        self.weight_hh = None if layer.weight_hh is None else nn.Parameter(layer.weight_hh.detach())
        # int8 takes products of one constant each.
        self.connections = nn.ParameterList(weight.detach().clone() for weight in layer.connections)
        if specification.has_attention:
            v_hidden, v_input = layer.attention_v.detach().split([self.cell.size, layer.input_size], dim=1)
            self.attention_hidden, self.attention_input = nn.Parameter(v_hidden.clone()), nn.Parameter(v_input.clone())
            self.attention_r = nn.Parameter(layer.attention_r.detach())
        like = self.weight_ih.detach()
        self.register_buffer("divisors", specification.divisors(like).view(1, -1, 1))
        self.register_buffer("outputs_read", specification.outputs_read(like).view(1, -1, 1))

    def read(self, x: Tensor) -> Tensors:
        return (F.linear(x, self.weight_ih, self.cell.bias),)

    def step_of(self, read: Tensors, state: RecurrentState) -> tuple[Tensors, RecurrentState]:
        specification, history = self.specification, state[0]
        shifts = [specification.shift(j) for j in range(len(specification.lags))]
        by_lag = [
            history[:, lag - 1, : specification.channels - shift]
            for lag, shift in zip(specification.lags, shifts, strict=True)
        ]
        products = [F.linear(h, weight) for h, weight in zip(by_lag, self.connections, strict=True)]
        recurrent = interpolated = self._in_slots(products, shifts, self.divisors)  # Eq. 2
        if self.weight_hh is not None:
            recurrent = F.linear(recurrent, self.weight_hh)
        elif specification.cell == "gru":
            interpolated = self._in_slots(by_lag, shifts, self.outputs_read)
        after = self.cell(read[0].unsqueeze(1), recurrent, state[1:], interpolated)  # Eq. 3
        hidden = after[0]
        # A channel's next in-degree is one more: it moves on by one slot.
        rolled = [part.roll(1, dims=1) if specification.channels > 1 else part for part in after]
        newest = rolled[0].unsqueeze(1)
        if specification.longest_lag > 1:
            newest = torch.cat([newest, history[:, :-1]], dim=1)
        return (hidden,), (newest, *rolled[1:])

    def output(self, x: Tensor, step_outputs: Tensors) -> Tensor:
        [hidden] = step_outputs
        if not self.specification.has_attention:
            return hidden.squeeze(-2)
        projected = F.linear(hidden, self.attention_hidden) + F.linear(x, self.attention_input).unsqueeze(-2)
        weights = torch.softmax(torch.tanh(projected) @ self.attention_r.unsqueeze(-1), dim=-2)  # Eq. 5 and 6
        return (weights * hidden).sum(-2)  # Eq. 4

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> RecurrentState:
        specification, size = self.specification, self.cell.size
        newest, *memory = _started(
            [self.weight_ih.new_zeros(batch_size, size) for _ in range(1 + self.has_cell_state)], h0, c0
        )
        slots = [part.unsqueeze(1).expand(-1, specification.channels, -1) for part in (newest, *memory)]
        older = newest.new_zeros(batch_size, specification.longest_lag - 1, specification.channels, size)
        return (torch.cat([slots[0].unsqueeze(1), older], dim=1), *slots[1:])

    def _in_slots(self, by_lag: Sequence[Tensor], shifts: Sequence[int], divisors: Tensor) -> Tensor:
        """The sum over lags, each from its slot on, divided."""
        total = by_lag[0]
        for part, shift in zip(by_lag[1:], shifts[1:], strict=True):
            total = total + F.pad(part, (0, 0, shift, 0))
        return total / divisors if self.specification.is_staggered or divisors is self.outputs_read else total


class ExportedHierarchicalRNN(ExportedNetwork):
    """``hm_rnn``: the state is the layer's own."""

    def __init__(self, layer: HierarchicalMultiscaleRNN, is_backward: bool = False) -> None:
        super().__init__(layer, is_backward)
        self.layer = layer
        with torch.no_grad():
            self.step_function = layer._step_function()

    def read(self, x: Tensor) -> Tensors:
        return (F.linear(x, self.layer.weight_bottom_up[0], self.layer.bias[0]),)

    def step_of(self, read: Tensors, state: RecurrentState) -> tuple[Tensors, RecurrentState]:
        after = self.step_function(read[0], HierarchicalMultiscaleState(*state, *self._no_boundaries(state)))
        return (after.hidden,), tuple(after)[: len(state)]

    def output(self, x: Tensor, step_outputs: Tensors) -> Tensor:
        return self.layer._output(step_outputs[0])

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> RecurrentState:
        # With one level there is no boundary, and ONNX has no use for tensors of no width.
        return tuple(self.layer.initial_state(batch_size, h0, c0))[: 2 + (self.layer.levels > 1)]

    def _no_boundaries(self, state: RecurrentState) -> list[Tensor]:
        return [state[0].new_zeros(state[0].size(0), 0)] if len(state) == 2 else []


class ExportedDilatedRNN(ExportedNetwork):
    """``dilated_rnn``: the state is the last s of h (B, s, H), oldest first, of the LSTM those of c, and the outputs
    before the fusion (B, w - 1, H)."""

    def __init__(self, layer: DilatedRNN, is_backward: bool = False) -> None:
        super().__init__(layer, is_backward)
        self.cell = ConventionalCell(layer.rnn)
        self.dilation, self.fusion, self.fusion_width = layer.dilation, layer.fusion, layer.fusion_width
        self.fusion_weight = None if layer.fusion_weight is None else nn.Parameter(layer.fusion_weight.detach())

    def read(self, x: Tensor) -> Tensors:
        return (self.cell.read(x),)

    def step_of(self, read: Tensors, state: RecurrentState) -> tuple[Tensors, RecurrentState]:
        rings = state[: len(state) - (self.fusion_width > 1)]
        (output,), after = self.cell(read, tuple(ring[:, 0] for ring in rings))
        next_rings = [torch.cat([ring[:, 1:], new.unsqueeze(1)], dim=1) for ring, new in zip(rings, after, strict=True)]
        if self.fusion_width == 1:
            return (output,), tuple(next_rings)
        whole = torch.cat([state[-1], output.unsqueeze(1)], dim=1)
        if self.fusion_weight is None:
            fused = whole.flatten(1)
        else:
            fused = (whole * self.fusion_weight.view(1, -1, 1)).sum(1)
        return (fused,), (*next_rings, whole[:, 1:])

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> RecurrentState:
        size = self.cell.cell.size
        newest = [None if part is None else part[:, -size:] for part in (h0, c0)]
        start = _started(self.cell.start(batch_size), *newest)
        rings = [part.unsqueeze(1).expand(-1, self.dilation, -1) for part in start]
        if self.fusion_width > 1:
            rings.append(start[0].new_zeros(batch_size, self.fusion_width - 1, size))
        return tuple(rings)


class ExportedRecurrentlyControlledRNN(ExportedNetwork):
    """``rcrn`` in one direction: the state is h and, of the LSTM, c of the forget controller, the output controller and
    the listener in turn, then c4."""

    def __init__(self, layer: RecurrentlyControlledRNN, is_backward: bool = False) -> None:
        super().__init__(layer, is_backward)
        self.output_gate = layer.output_gate
        self.networks = nn.ModuleList(ConventionalCell(rnn) for rnn in layer._networks())

    def read(self, x: Tensor) -> Tensors:
        return tuple(network.read(x) for network in self._cells)

    def step_of(self, read: Tensors, state: RecurrentState) -> tuple[Tensors, RecurrentState]:
        parts, after = 1 + self.has_cell_state, []
        for number, cell in enumerate(self._cells):
            after += cell((read[number],), state[number * parts : (number + 1) * parts])[1]
        h1, h2, h3 = after[::parts]
        (controlled,) = _controlled((torch.sigmoid(h1), h3), state[-1:])[1]
        return (_gated(h2, controlled, self.output_gate),), (*after, controlled)

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> RecurrentState:
        starts = [_started(cell.start(batch_size), h0, c0) for cell in self._cells]
        return (*(part for start in starts for part in start), torch.zeros_like(starts[0][0]))

    @property
    def _cells(self) -> list[ConventionalCell]:
        return cast("list[ConventionalCell]", list(self.networks))


class ExportedBidirectionalRCRN(ExportedNetwork):
    """``rcrn`` in two directions: Eq. 15 from left to right over the features of both."""

    def __init__(self, layer: RecurrentlyControlledRNN, is_backward: bool = False) -> None:
        super().__init__(layer)
        self.size, self.output_gate = layer.hidden_size, layer.output_gate
        cells = [[ConventionalCell(rnn, suffix) for rnn in layer._networks()] for suffix in ("", "_reverse")]
        self.loops = nn.ModuleList(
            Loop(cell, is_backward) for row, is_backward in zip(cells, (False, True), strict=True) for cell in row
        )
        self.loop = Loop(_controlled)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: RecurrentState | None = None,
        need_details: bool = False,
    ) -> RecurrentOutput:
        is_real = _real(x, lengths)
        outputs = []
        for loop in self.loops:
            cell = cast(ConventionalCell, loop.step)
            outputs.append(loop(cell.start(x.size(1)), (cell.read(x),), is_real)[1][0] * is_real)
        h1, h2, h3 = (torch.cat(pair, dim=-1) for pair in zip(outputs[:3], outputs[3:], strict=True))
        _, (controlled,) = self.loop((torch.zeros_like(h1[0]),), (torch.sigmoid(h1), h3), is_real)
        return RecurrentOutput(_gated(h2, controlled, self.output_gate) * is_real, None, {})

    def summaries(self, result: RecurrentOutput, lengths: Tensor | None) -> list[Tensor]:
        [last] = super().summaries(result, lengths)
        return [torch.cat([last[:, : self.size], result.output[0, :, self.size :]], dim=-1)]


class ExportedByStep(ExportedNetwork):
    """Any other kind, a user's own: its step as it is."""

    def __init__(self, layer: RecurrentNetwork[Any], is_backward: bool = False) -> None:
        super().__init__(layer, is_backward)
        self.layer = layer
        start = layer.initial_state(1)
        # What makes a named tuple, where the state is one.
        self.kind: Callable[[Sequence[Tensor]], Any] = getattr(type(start), "_make", tuple)
        self.shapes = [part.shape[1:] for part in start]

    def step_of(self, read: Tensors, state: RecurrentState) -> tuple[Tensors, RecurrentState]:
        parts, rows = iter(state), read[0].size(0)
        before = [read[0].new_zeros(rows, *shape) if 0 in shape else next(parts) for shape in self.shapes]
        output, after = self.layer.step(read[0], self.kind(before))
        return (output,), self._with_width(after)

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> RecurrentState:
        return self._with_width(self.layer.initial_state(batch_size, h0, c0))

    def _with_width(self, state: RecurrentState) -> RecurrentState:
        # ONNX has no use for tensors of no width.
        return tuple(part for part, shape in zip(state, self.shapes, strict=True) if 0 not in shape)


def exported(layer: RecurrentNetwork[Any], is_backward: bool = False) -> ExportedNetwork:
    """The exported form of a layer. Those that are derived from one of ours may compute anything: their step is taken.

    Raises:
        InputError: it is of a kind that does not run step by step, and that is none of ours.
    """
    if type(layer) is RecurrentlyControlledRNN:
        form = ExportedBidirectionalRCRN if layer.bidirectional else ExportedRecurrentlyControlledRNN
        return form(layer, is_backward)
    if type(layer) in _FORMS:
        return _FORMS[type(layer)](layer, is_backward)
    if not layer.is_steppable:
        raise InputError(f"a layer of the kind {type(layer).__name__} does not run step by step: it cannot be exported")
    return ExportedByStep(layer, is_backward)


_FORMS: dict[type[RecurrentNetwork[Any]], Callable[..., ExportedNetwork]] = {
    ConventionalRNN: ExportedConventionalRNN,
    MultiChannelRNN: ExportedConnectedRNN,
    HigherOrderRNN: ExportedConnectedRNN,
    HierarchicalMultiscaleRNN: ExportedHierarchicalRNN,
    DilatedRNN: ExportedDilatedRNN,
}


class ExportedStack(NetworkStack):
    """A stack of exported layers. Those that read backwards do it by themselves."""

    def __init__(self, stack: NetworkStack) -> None:
        backwards = stack.backward_layers
        super().__init__(
            [exported(layer) for layer in stack.layers],
            None if backwards is None else [exported(layer, is_backward=True) for layer in backwards],
        )

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        states: Sequence[RecurrentState] | None = None,
        need_details: bool = False,
    ) -> StackOutput:
        outputs, by_layer = [], []
        for i in range(len(self.layers)):
            state = None if states is None else states[i]
            results = tuple(network(x, lengths, state) for network in self.networks(i))
            x = torch.cat([result.output for result in results], dim=-1) if len(results) > 1 else results[0].output
            outputs.append(x)
            by_layer.append(results)
        final = tuple(result.state for results in by_layer for result in results)
        return StackOutput(x, final, {}, tuple(outputs), tuple(by_layer))


def with_exported_layers(model: nn.Module) -> nn.Module:
    """A copy of a model in evaluation mode, whose recurrent layers are in their exported form."""
    model = copy.deepcopy(model)
    model.eval()  # of fairseq's models that have decoded it returns nothing
    for module in list(model.modules()):
        for name, part in list(module.named_children()):
            if isinstance(part, NetworkStack):
                setattr(module, name, ExportedStack(part))
    return model


def _real(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Where x (T, B, D) has real tokens: (T, B, 1)."""
    if lengths is None:
        return x.new_ones(*x.shape[:2], 1, dtype=torch.bool)
    return ~padding_mask(lengths, x.size(0)).unsqueeze(-1)


def _started(zeros: Sequence[Tensor], *starts: Tensor | None) -> RecurrentState:
    """What a state starts from: zeros where there is nothing else."""
    return tuple(
        zero if start is None else start for zero, start in zip(zeros, (*starts, *[None] * len(zeros)), strict=False)
    )


def _controlled(read: Tensors, state: RecurrentState) -> tuple[Tensors, RecurrentState]:
    """Eq. 15 of RCRN: a gate and a candidate."""
    gate, candidate = read
    controlled = gate * state[0] + (1 - gate) * candidate
    return (controlled,), (controlled,)


def _gated(h2: Tensor, controlled: Tensor, output_gate: str) -> Tensor:
    """Eq. 16 of RCRN."""
    return (torch.sigmoid(h2) if output_gate == "sigmoid" else h2) * controlled
