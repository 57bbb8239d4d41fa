"""The recurrence on GPUs: CUDA graphs of a fixed number of steps, each one matrix product and one Triton kernel.

The weights are folded: F_j = W_hh W_j takes h(t - j) to the gates directly (for ``gate`` it is W_j itself), and the
GRU's product holds s of Eq. 2 beside the gates. The *operand* of a step, (S slots, B, K lags, H), holds for each slot
the outputs that it reads, zero where it reads fewer than K; with slots ordered by in-degree (``specification.py``) the
operand is laid out alike at every step, so that [F_1 ... F_K] times it is one product, and the same graph serves any
step of any sequence. Each step writes its output into the operands of those of the next L steps that read it, L the
longest lag.

A graph works in buffers of its own, into which inputs are copied and from which results are copied after every
``STEPS`` steps. Under Triton's interpreter (TRITON_INTERPRET=1 in the environment when triton is first imported) the
same code runs on CPUs, without graphs, for tests.
"""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton import language as tl

from ..captured_graphs import Programs, bucket, captured, is_capturing, precision, stream_of
from ..second_derivatives import differentiable_once
from . import vectorized
from .specification import (
    MultiChannelLayer,
    MultiChannelOutput,
    MultiChannelSpecification,
    MultiChannelState,
    Stepper,
)
from .triton import backward_step, forward_step
from .vectorized import RecurrenceInputs

# Steps of one graph.
STEPS = 8
# Batches up to this size share a graph; larger ones are rounded up by less than a quarter.
SMALLEST_BATCH = 8
# After every graph as many steps' operands are copied.
LONGEST_LAG = 16

# Numbers for each feature: columns of a product, and what a step keeps for its backward pass.
_PRODUCT = {"lstm": 4, "gru": 4, "rnn": 1}
_ACTIVATIONS = {"lstm": 4, "gru": 5, "rnn": 1}

_TL_DTYPES = {torch.float32: tl.float32, torch.float64: tl.float64}


def refuses(layer: MultiChannelLayer, rows: int) -> str | None:
    """Why it does not take the layer for so many rows of input, or None."""
    device, longest = layer.parameters.weight_connection.device, layer.specification.longest_lag
    is_interpreted = device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"
    if device.type != "cuda" and not is_interpreted:
        return f"it computes on GPUs, and the layer is on {device.type}"
    if is_capturing():
        return "it is part of a graph, and makes graphs of its own"
    if longest > LONGEST_LAG:
        return f"a lag of {longest} is longer than the {LONGEST_LAG} that its graphs are made for"
    return None if rows else "there is nothing to compute"


def multi_channel_rnn(
    layer: MultiChannelLayer,
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    need_details: bool = False,
) -> MultiChannelOutput:
    """See :func:`fairseq_plugins.kernels.multi_channel_rnn`."""
    run = functools.partial(_recurrence, _folded(layer))
    return vectorized.multi_channel_rnn(run, layer, x, lengths, state, need_details)


def stepper(layer: MultiChannelLayer, batch_size: int) -> Stepper:
    """See :func:`fairseq_plugins.kernels.multi_channel_stepper`."""
    run = functools.partial(_recurrence, _folded(layer))

    def step(x: Tensor, state: MultiChannelState) -> tuple[Tensor, MultiChannelState]:
        result = vectorized.multi_channel_rnn(run, layer, x.unsqueeze(0), None, state)
        return result.output.squeeze(0), result.state

    return step


def captures() -> int:
    """Graphs captured so far in this process (under the interpreter: sets of buffers made)."""
    return _programs.made


def _folded(layer: MultiChannelLayer) -> Tensor:
    """[F_1 ... F_K], (N, K * H)."""
    specification, parameters = layer
    weight, weight_hh = parameters.weight_connection, parameters.weight_hh
    dtype = weight.dtype
    device = weight.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        folded = weight if weight_hh is None else weight_hh @ weight
        if specification.cell == "gru":
            if weight_hh is None:
                # It interpolates with the mean of the outputs that it reads.
                shares = specification.divisors(weight) / specification.outputs_read(weight)
                weight = torch.diag(shares[-1:].expand(weight.size(-1))).expand(weight.size(0), -1, -1)
            folded = torch.cat([folded, weight], dim=1)
        return folded.transpose(0, 1).flatten(1).to(dtype)


def _recurrence(
    folded: Tensor, specification: MultiChannelSpecification, inputs: RecurrenceInputs
) -> tuple[Tensor, Tensor]:
    """A recurrence as ``vectorized.py`` defines it; ``folded`` stands for its weights."""
    dtype = folded.dtype
    with torch.autocast(inputs.gates.device.type, enabled=False):
        bias = None if inputs.candidate_bias is None else inputs.candidate_bias.to(dtype)
        cell_state = inputs.cell_state.to(_compute_dtype(dtype))
        tensors = inputs.gates.to(dtype), bias, inputs.history.to(dtype), cell_state, folded
        result: tuple[Tensor, Tensor] = _Recurrence.apply(specification, torch.is_grad_enabled(), *tensors)
        return result


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        specification: MultiChannelSpecification,
        keep: bool,
        gates: Tensor,
        candidate_bias: Tensor | None,
        history: Tensor,
        cell_state: Tensor,
        folded: Tensor,
    ) -> tuple[Tensor, Tensor]:
        steps, batch_size, _ = gates.shape
        longest, slots, _, hidden_size = history.shape
        hidden = gates.new_empty(longest + steps, slots, batch_size, hidden_size)
        hidden[:longest] = history.flip(0)
        cell_states = cell_state.new_empty(1 + steps, *cell_state.shape)
        cell_states[0] = cell_state
        width = _ACTIVATIONS[specification.cell] * hidden_size
        activations = gates.new_empty(steps if keep else 0, slots, batch_size, width)

        with _programs.lock:
            program = _programs.get(_Forward, _Shape.of(gates, hidden, specification))
            program.start(history, cell_state, folded, candidate_bias)
            chunk = program.shape.steps
            for begin in range(0, steps, chunk):
                end = min(begin + chunk, steps)
                program.run(gates[begin:end], is_first=begin == 0)
                program.read(
                    hidden[longest + begin : longest + end],
                    cell_states[1 + begin : 1 + end],
                    activations[begin:end] if keep else None,
                )
        ctx.save_for_backward(hidden, cell_states, activations, folded)
        ctx.specification = specification
        ctx.set_materialize_grads(False)
        return hidden, cell_states

    @staticmethod
    @differentiable_once("autograd")
    def backward(ctx: Any, grad_hidden: Tensor | None, grad_cell_states: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, cell_states, activations, folded = ctx.saved_tensors
        specification: MultiChannelSpecification = ctx.specification
        steps, slots, batch_size, _ = activations.shape
        longest, hidden_size = specification.longest_lag, hidden.size(-1)
        if grad_hidden is None:
            grad_hidden = torch.zeros_like(hidden)
        if specification.cell != "lstm":
            grad_cell_states = None
        grad_product = hidden.new_empty(steps, slots, batch_size, folded.size(0))
        grad_gates = hidden.new_empty(steps, batch_size, specification.gates * hidden_size)

        shape = _Shape.of(grad_gates, hidden, specification)
        # Encoders start from zeros, of which nobody asks for gradients.
        needs_state = ctx.needs_input_grad[4] or ctx.needs_input_grad[5]
        grad_state = None
        with _programs.lock:
            program = _programs.get(_Backward, shape)
            program.start(folded)
            for end in range(steps, 0, -shape.steps):
                begin = max(end - shape.steps, 0)
                program.run(
                    activations[begin:end],
                    cell_states[begin : end + 1],
                    grad_hidden[longest + begin : longest + end],
                    None if grad_cell_states is None else grad_cell_states[begin + 1 : end + 1],
                    is_last=end == steps,
                )
                program.read(grad_product[begin:end], grad_gates[begin:end])
            if needs_state:
                grad_state = program.grad_state((steps - 1) % shape.steps + 1, batch_size)
        grad_history = grad_cell_state = None
        if grad_state is not None:
            grad_history, grad_cell_state = grad_state
            grad_history = grad_history + grad_hidden[:longest].flip(0)
            if grad_cell_states is not None:
                grad_cell_state = grad_cell_state + grad_cell_states[0]

        grad_folded = torch.empty_like(folded)
        for j, lag in enumerate(specification.lags):
            readers = grad_product[:, specification.shift(j) :]
            read = hidden[longest - lag : longest - lag + steps, : readers.size(1)]
            grad_folded[:, j * hidden_size : (j + 1) * hidden_size] = readers.reshape(
                -1, readers.size(-1)
            ).t() @ read.reshape(-1, hidden_size)
        grad_candidate_bias = None
        if specification.cell == "gru":
            inside = grad_product[..., 2 * hidden_size : 3 * hidden_size].sum((0, 2), dtype=cell_states.dtype)
            grad_candidate_bias = (inside * specification.divisors(inside).unsqueeze(-1)).sum(0).to(folded.dtype)
        return None, None, grad_gates, grad_candidate_bias, grad_history, grad_cell_state, grad_folded


class _Shape(NamedTuple):
    """What a graph is made for. ``batch`` is a bucket of batch sizes."""

    specification: MultiChannelSpecification
    batch: int
    hidden: int
    steps: int
    dtype: torch.dtype
    device: torch.device
    precision: str
    stream: int

    @classmethod
    def of(cls, gates: Tensor, hidden: Tensor, specification: MultiChannelSpecification) -> _Shape:
        batch, hidden_size = bucket(gates.size(1), SMALLEST_BATCH), hidden.size(-1)
        steps = STEPS if gates.size(0) > 1 else 1  # a graph of its own, for decoding
        return cls(specification, batch, hidden_size, steps, gates.dtype, gates.device, precision(), stream_of(gates))

    @property
    def cell_state(self) -> int:
        """The width of the cell state."""
        return self.hidden if self.specification.cell == "lstm" else 0

    @property
    def operand(self) -> tuple[int, ...]:
        """The sizes of the operand of a step."""
        return self.specification.channels, self.batch, len(self.specification.lags), self.hidden

    def zeros(self, *size: int, compute: bool = False) -> Tensor:
        dtype = _compute_dtype(self.dtype) if compute else self.dtype
        return torch.zeros(size, dtype=dtype, device=self.device)

    def launch(self, kernel: Any, *tensors: Tensor) -> None:
        block = min(128, 1 << (self.hidden - 1).bit_length())
        grid = (self.batch, -(-self.hidden // block))
        kernel[grid](
            *tensors,
            self.batch,
            self.hidden,
            CELL=self.specification.cell,
            SLOTS=self.specification.channels,
            LAGS=len(self.specification.lags),
            STAGGERED=self.specification.is_staggered,
            BLOCK=block,
            COMPUTE=_TL_DTYPES[_compute_dtype(self.dtype)],
        )

    def distances(self) -> Tensor:
        """How many steps after the next one each lag is read (K,)."""
        lags = torch.tensor(self.specification.lags, dtype=torch.int32, device=self.device)
        return lags - 1


class _Forward:
    """The buffers and the work of ``steps`` time steps."""

    def __init__(self, shape: _Shape) -> None:
        self.shape = shape
        specification, batch, hidden, steps = shape[:4]
        slots, longest = specification.channels, specification.longest_lag
        product = _PRODUCT[specification.cell] * hidden
        self.weight = shape.zeros(product, len(specification.lags) * hidden)
        self.candidate_bias = shape.zeros(hidden)
        self.gates = shape.zeros(steps, batch, specification.gates * hidden)
        self.operand = shape.zeros(steps + longest, *shape.operand)
        self.product = shape.zeros(slots * batch, product)
        self.activations = shape.zeros(steps, slots, batch, _ACTIVATIONS[specification.cell] * hidden)
        self.hidden = shape.zeros(steps, slots, batch, hidden)
        self.cell_states = shape.zeros(1 + steps, slots, batch, shape.cell_state, compute=True)
        self.distances = shape.distances()
        # From (step, slot, lag) of the operand to (output, slot) of the history, or to the zeros behind it.
        lags = range(len(specification.lags))
        source = [
            [[_history_of(t, slot, j, specification) for j in lags] for slot in range(slots)] for t in range(longest)
        ]
        self.source = torch.tensor(source, device=shape.device)
        self.replay = captured(self.work, shape.device)

    def work(self) -> None:
        shape = self.shape
        for t in range(shape.steps):
            operand = self.operand[t].flatten(0, 1).flatten(1)
            torch.mm(operand, self.weight.t(), out=self.product)
            shape.launch(
                forward_step,
                self.product,
                self.gates[t],
                self.candidate_bias,
                self.cell_states[t],
                self.distances,
                self.activations[t],
                self.cell_states[t + 1],
                self.hidden[t],
                self.operand[t + 1 :],
            )

    def start(self, history: Tensor, cell_state: Tensor, weight: Tensor, candidate_bias: Tensor | None) -> None:
        """The state before the first step: ``history`` (L, S, B, H), newest first, ``cell_state`` (S, B, H or 0)."""
        longest, _, batch_size, hidden_size = history.shape
        self.weight.copy_(weight)
        if candidate_bias is not None:
            self.candidate_bias.copy_(candidate_bias)
        outputs = torch.cat([history.flatten(0, 1), history.new_zeros(1, batch_size, hidden_size)])
        # (L steps, S, K lags, B, H)
        self.operand[:longest, :, :batch_size] = outputs[self.source].transpose(2, 3)
        self.cell_states[0, :, :batch_size] = cell_state

    def run(self, gates: Tensor, is_first: bool) -> None:
        """Goes on for the steps of ``gates`` (at most ``steps``, B, G * H)."""
        longest, steps = self.shape.specification.longest_lag, self.shape.steps
        if not is_first:
            self.operand[:longest] = self.operand[steps:].clone()
            self.cell_states[0] = self.cell_states[steps]
        self.gates[: gates.size(0), : gates.size(1)] = gates
        self.replay()

    def read(self, hidden: Tensor, cell_states: Tensor, activations: Tensor | None) -> None:
        """Copies the results of the last run into (steps, S, B, ...)."""
        count, _, batch_size, _ = hidden.shape
        hidden.copy_(self.hidden[:count, :, :batch_size])
        cell_states.copy_(self.cell_states[1 : 1 + count, :, :batch_size])
        if activations is not None:
            activations.copy_(self.activations[:count, :, :batch_size])


class _Backward:
    """The buffers and the work of ``steps`` time steps, last to first.

    Fewer steps are at the end of the buffers: what is computed before them is not read.
    """

    def __init__(self, shape: _Shape) -> None:
        self.shape = shape
        specification, batch, hidden, steps = shape[:4]
        slots, longest = specification.channels, specification.longest_lag
        product = _PRODUCT[specification.cell] * hidden
        self.weight = shape.zeros(product, len(specification.lags) * hidden)
        self.activations = shape.zeros(steps, slots, batch, _ACTIVATIONS[specification.cell] * hidden)
        self.cell_states = shape.zeros(1 + steps, slots, batch, shape.cell_state, compute=True)
        self.grad_hidden = shape.zeros(steps, slots, batch, hidden)
        self.grad_outer_cell_states = shape.zeros(steps, slots, batch, shape.cell_state, compute=True)
        self.grad_operand = shape.zeros(steps + longest, *shape.operand)
        self.grad_cell_states = shape.zeros(1 + steps, slots, batch, shape.cell_state, compute=True)
        self.grad_product = shape.zeros(steps, slots, batch, product)
        self.grad_gates = shape.zeros(steps, batch, specification.gates * hidden)
        self.distances = shape.distances()
        self.replay = captured(self.work, shape.device)

    def work(self) -> None:
        shape = self.shape
        rows = shape.specification.channels * shape.batch
        for t in reversed(range(shape.steps)):
            shape.launch(
                backward_step,
                self.activations[t],
                self.cell_states[t],
                self.cell_states[t + 1],
                self.distances,
                self.grad_hidden[t],
                self.grad_operand[t + 1 :],
                self.grad_cell_states[t + 1],
                self.grad_outer_cell_states[t],
                self.grad_product[t],
                self.grad_gates[t],
                self.grad_cell_states[t],
            )
            torch.mm(self.grad_product[t].view(rows, -1), self.weight, out=self.grad_operand[t].view(rows, -1))

    def start(self, weight: Tensor) -> None:
        self.weight.copy_(weight)

    def run(
        self,
        activations: Tensor,
        cell_states: Tensor,
        grad_hidden: Tensor,
        grad_cell_states: Tensor | None,
        is_last: bool,
    ) -> None:
        """Goes back through the steps of ``activations`` (at most ``steps``, S, B, A * H)."""
        steps, longest, count = self.shape.steps, self.shape.specification.longest_lag, activations.size(0)
        rows = slice(activations.size(2))
        if is_last:
            self.grad_operand[steps:] = 0
            self.grad_cell_states[steps] = 0
        else:
            self.grad_operand[steps:] = self.grad_operand[:longest].clone()
            self.grad_cell_states[steps] = self.grad_cell_states[0]
        first = steps - count
        self.activations[first:, :, rows] = activations
        self.cell_states[first:, :, rows] = cell_states
        self.grad_hidden[first:, :, rows] = grad_hidden
        self.grad_outer_cell_states[first:, :, rows] = 0 if grad_cell_states is None else grad_cell_states
        self.replay()

    def read(self, grad_product: Tensor, grad_gates: Tensor) -> None:
        """Copies the results of the last run."""
        count, batch_size, _ = grad_gates.shape
        grad_product.copy_(self.grad_product[-count:, :, :batch_size])
        grad_gates.copy_(self.grad_gates[-count:, :batch_size])

    def grad_state(self, count: int, batch_size: int) -> tuple[Tensor, Tensor]:
        """The gradients of history (L, S, B, H) and cell state (S, B, H or 0) before the last run's ``count`` steps."""
        shape, first = self.shape, self.shape.steps - count
        specification = shape.specification
        slots = specification.channels
        grad_history = shape.zeros(specification.longest_lag, slots, batch_size, shape.hidden)
        for t in range(specification.longest_lag):
            for j, lag in enumerate(specification.lags):
                if lag > t:
                    # With fewer than L steps in all, the operands behind them have zero gradients.
                    step = self.grad_operand[first + t, :, :batch_size, j]
                    shift = specification.shift(j)
                    grad_history[lag - 1 - t, : slots - shift] += step[shift:]
        return grad_history, self.grad_cell_states[first, :, :batch_size].clone()


_programs = Programs()


def _history_of(t: int, slot: int, j: int, specification: MultiChannelSpecification) -> int:
    """Which of the history's L * S outputs the operand of step ``t`` holds in a slot for ``lags[j]``, all from 0.

    L * S stands for none: zeros, or what a later step writes.
    """
    source_slot, lag = slot - specification.shift(j), specification.lags[j]
    if lag <= t or source_slot < 0:
        return specification.longest_lag * specification.channels
    return (lag - 1 - t) * specification.channels + source_slot


def _compute_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
