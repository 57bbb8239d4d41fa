"""The recurrence on GPUs: CUDA graphs of a fixed number of steps, each one matrix product and one Triton kernel.

The weights are folded: F_j = W_hh W_j takes h(t - j) to the gates directly (for ``gate`` it is W_j itself), and the
GRU's product holds s of Eq. 2 beside the gates. The *operand* of a step, (S slots, B, L lags, H), holds for each slot
the outputs that it reads, zero where it reads fewer than L; with slots ordered by in-degree (``interface.py``) the
operand is laid out alike at every step, so that [F_1 ... F_L] times it is one product, and the same graph serves any
step of any sequence. Each step writes its output into the operands of the next L steps.

A graph works in buffers of its own, into which inputs are copied and from which results are copied after every
``STEPS`` steps. Under Triton's interpreter (TRITON_INTERPRET=1 in the environment when triton is first imported) the
same code runs on CPUs, without graphs, for tests.
"""

from __future__ import annotations

import functools
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from triton import language as tl

from . import cpp, vectorized
from .fused_cells import backward_step, forward_step
from .interface import (
    GATES,
    MultiChannelOutput,
    MultiChannelParameters,
    MultiChannelState,
    Stepper,
    divisors,
    outputs_read,
    slot_shift,
)

# Steps of one graph. A single step has a graph of its own, for decoding.
STEPS = 8
GRAPHS_KEPT = 16
# Batches up to this size share a graph; larger ones are rounded up by less than a quarter.
SMALLEST_BATCH = 8

# Numbers for each feature: columns of a product, and what a step keeps for its backward pass.
_PRODUCT = {"lstm": 4, "gru": 4, "rnn": 1}
_ACTIVATIONS = {"lstm": 4, "gru": 5, "rnn": 1}

_TL_DTYPES = {torch.float32: tl.float32, torch.float64: tl.float64}


def takes(tensor: Tensor) -> bool:
    """Whether this backend computes where ``tensor`` is."""
    return tensor.is_cuda or (tensor.device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1")


def multi_channel_rnn(
    x: Tensor,
    lengths: Tensor | None,
    state: MultiChannelState,
    parameters: MultiChannelParameters,
    cell: str,
    connection: str,
    need_channel_attention: bool = False,
) -> MultiChannelOutput:
    """See :func:`fairseq_plugins.kernels.multi_channel_rnn`. What is not on a GPU goes to ``cpp``."""
    if not takes(x) or x.size(0) * x.size(1) == 0:
        return cpp.multi_channel_rnn(x, lengths, state, parameters, cell, connection, need_channel_attention)
    run = functools.partial(_recurrence, _folded(parameters, cell, connection))
    return vectorized.multi_channel_rnn(run, x, lengths, state, parameters, cell, connection, need_channel_attention)


def stepper(parameters: MultiChannelParameters, cell: str, connection: str) -> Stepper | None:
    """See :func:`fairseq_plugins.kernels.multi_channel_stepper`. None where this backend does not compute."""
    if not takes(parameters.weight_connection):
        return None
    run = functools.partial(_recurrence, _folded(parameters, cell, connection))

    def step(x: Tensor, state: MultiChannelState) -> tuple[Tensor, MultiChannelState]:
        result = vectorized.multi_channel_rnn(run, x.unsqueeze(0), None, state, parameters, cell, connection)
        return result.output.squeeze(0), result.state

    return step


def captures() -> int:
    """Graphs captured so far in this process (under the interpreter: sets of buffers made)."""
    return _programs.made


def _folded(parameters: MultiChannelParameters, cell: str, connection: str) -> Tensor:
    """[F_1 ... F_L], (N, L * H)."""
    weight = parameters.weight_connection
    dtype = weight.dtype
    device = weight.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        folded = weight if connection == "gate" else parameters.weight_hh @ weight
        if cell == "gru":
            if connection == "gate":
                # It interpolates with the mean of the outputs that it reads.
                lags, channels = weight.size(0), parameters.channels
                shares = divisors(channels, lags, weight) / outputs_read(channels, lags, weight)
                weight = torch.diag(shares[-1:].expand(weight.size(-1))).expand(lags, -1, -1)
            folded = torch.cat([folded, weight], dim=1)
        return folded.transpose(0, 1).flatten(1).to(dtype)


def _recurrence(
    folded: Tensor,
    gates: Tensor,
    candidate_bias: Tensor | None,
    history: Tensor,
    memory: Tensor,
    weight_hh: Tensor | None,
    weight_connection: Tensor,
    cell: str,
    connection: str,
) -> tuple[Tensor, Tensor]:
    """A recurrence as ``vectorized.py`` defines it; ``folded`` holds what its weights and ``connection`` say."""
    dtype = folded.dtype
    with torch.autocast(gates.device.type, enabled=False):
        bias = None if candidate_bias is None else candidate_bias.to(dtype)
        memory = memory.to(_compute_dtype(dtype))
        inputs = gates.to(dtype), bias, history.to(dtype), memory, folded
        return _Recurrence.apply(*inputs, cell, torch.is_grad_enabled())


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        candidate_bias: Tensor | None,
        history: Tensor,
        memory: Tensor,
        folded: Tensor,
        cell: str,
        keep: bool,
    ) -> tuple[Tensor, Tensor]:
        steps, batch_size, _ = gates.shape
        lags, slots, _, hidden_size = history.shape
        hidden = gates.new_empty(lags + steps, slots, batch_size, hidden_size)
        hidden[:lags] = history.flip(0)
        memories = memory.new_empty(1 + steps, *memory.shape)
        memories[0] = memory
        activations = gates.new_empty(steps if keep else 0, slots, batch_size, _ACTIVATIONS[cell] * hidden_size)

        program = _programs.get(_Forward, _Shape.of(gates, history, cell))
        program.start(history, memory, folded, candidate_bias)
        chunk = program.shape.steps
        for begin in range(0, steps, chunk):
            end = min(begin + chunk, steps)
            program.run(gates[begin:end], is_first=begin == 0)
            program.read(
                hidden[lags + begin : lags + end],
                memories[1 + begin : 1 + end],
                activations[begin:end] if keep else None,
            )
        ctx.save_for_backward(hidden, memories, activations, folded)
        ctx.cell = cell
        ctx.set_materialize_grads(False)
        return hidden, memories

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hidden: Tensor | None, grad_memories: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, memories, activations, folded = ctx.saved_tensors
        cell = ctx.cell
        steps, slots, batch_size, _ = activations.shape
        lags, hidden_size = hidden.size(0) - steps, hidden.size(-1)
        if grad_hidden is None:
            grad_hidden = torch.zeros_like(hidden)
        if grad_memories is not None and cell != "lstm":
            grad_memories = None
        grad_product = hidden.new_empty(steps, slots, batch_size, folded.size(0))
        grad_gates = hidden.new_empty(steps, batch_size, GATES[cell] * hidden_size)

        shape = _Shape.of(grad_gates, hidden[:lags], cell)
        program = _programs.get(_Backward, shape)
        program.start(folded)
        for end in range(steps, 0, -shape.steps):
            begin = max(end - shape.steps, 0)
            program.run(
                activations[begin:end],
                memories[begin : end + 1],
                grad_hidden[lags + begin : lags + end],
                None if grad_memories is None else grad_memories[begin + 1 : end + 1],
                is_last=end == steps,
            )
            program.read(grad_product[begin:end], grad_gates[begin:end])
        grad_history = grad_memory = None
        # Encoders start from zeros, of which nobody asks for gradients.
        if ctx.needs_input_grad[2] or ctx.needs_input_grad[3]:
            grad_history, grad_memory = program.grad_state((steps - 1) % shape.steps + 1, batch_size)
            grad_history = grad_history + grad_hidden[:lags].flip(0)
            if grad_memories is not None:
                grad_memory = grad_memory + grad_memories[0]

        grad_folded = torch.empty_like(folded)
        for lag in range(lags):
            readers = grad_product[:, slot_shift(lag + 1, slots, lags) :]
            read = hidden[lags - 1 - lag : lags - 1 - lag + steps, : readers.size(1)]
            grad_folded[:, lag * hidden_size : (lag + 1) * hidden_size] = readers.reshape(
                -1, readers.size(-1)
            ).t() @ read.reshape(-1, hidden_size)
        grad_candidate_bias = None
        if cell == "gru":
            inside = grad_product[..., 2 * hidden_size : 3 * hidden_size].sum((0, 2), dtype=memories.dtype)
            grad_candidate_bias = (inside * divisors(slots, lags, inside).unsqueeze(-1)).sum(0).to(folded.dtype)
        return grad_gates, grad_candidate_bias, grad_history, grad_memory, grad_folded, None, None


class _Shape(NamedTuple):
    """What a graph is made for. ``batch`` is a bucket of batch sizes."""

    cell: str
    lags: int
    slots: int
    batch: int
    hidden: int
    steps: int
    dtype: torch.dtype
    device: torch.device
    # Whether products round to TF32 is decided when they are captured.
    precision: str
    stream: int

    @classmethod
    def of(cls, gates: Tensor, history: Tensor, cell: str) -> _Shape:
        lags, slots, batch_size, hidden_size = history.shape
        stream = torch.cuda.current_stream(gates.device).cuda_stream if gates.is_cuda else 0
        precision = torch.get_float32_matmul_precision()
        steps = 1 if gates.size(0) == 1 else STEPS
        return cls(
            cell,
            lags,
            slots,
            _bucket(batch_size),
            hidden_size,
            steps,
            gates.dtype,
            gates.device,
            precision,
            stream,
        )

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
            CELL=self.cell,
            SLOTS=self.slots,
            LAGS=self.lags,
            STAGGERED=self.slots == self.lags,
            BLOCK=block,
            COMPUTE=_TL_DTYPES[_compute_dtype(self.dtype)],
        )


class _Forward:
    """The buffers and the work of ``steps`` time steps."""

    def __init__(self, shape: _Shape) -> None:
        self.shape = shape
        cell, lags, slots, batch, hidden, steps, *_ = shape
        self.weight = shape.zeros(_PRODUCT[cell] * hidden, lags * hidden)
        self.candidate_bias = shape.zeros(hidden)
        self.gates = shape.zeros(steps, batch, GATES[cell] * hidden)
        self.operand = shape.zeros(steps + lags, slots, batch, lags, hidden)
        self.product = shape.zeros(slots * batch, _PRODUCT[cell] * hidden)
        self.activations = shape.zeros(steps, slots, batch, _ACTIVATIONS[cell] * hidden)
        self.hidden = shape.zeros(steps, slots, batch, hidden)
        self.memories = shape.zeros(1 + steps, slots, batch, hidden if cell == "lstm" else 0, compute=True)
        # From (step, slot, lag) of the operand to (lag, slot) of the history, or to the zeros behind it.
        source = [
            [[_history_of(t, slot, lag, shape) for lag in range(lags)] for slot in range(slots)] for t in range(lags)
        ]
        self.source = torch.tensor(source, device=shape.device)
        self.replay = _captured(self.work, shape.device)

    def work(self) -> None:
        shape = self.shape
        for t in range(shape.steps):
            operand = self.operand[t].view(shape.slots * shape.batch, -1)
            torch.mm(operand, self.weight.t(), out=self.product)
            shape.launch(
                forward_step,
                self.product,
                self.gates[t],
                self.candidate_bias,
                self.memories[t],
                self.activations[t],
                self.memories[t + 1],
                self.hidden[t],
                self.operand[t + 1 :],
            )

    def start(self, history: Tensor, memory: Tensor, weight: Tensor, candidate_bias: Tensor | None) -> None:
        """``history`` (L, S, B, H), newest first, and ``memory`` (S, B, H or 0): the state before the first step."""
        lags, slots, batch_size, hidden_size = history.shape
        self.weight.copy_(weight)
        if candidate_bias is not None:
            self.candidate_bias.copy_(candidate_bias)
        outputs = torch.cat([history.flatten(0, 1), history.new_zeros(1, batch_size, hidden_size)])
        # (L steps, S, L lags, B, H)
        self.operand[:lags, :, :batch_size] = outputs[self.source].transpose(2, 3)
        self.memories[0, :, :batch_size] = memory

    def run(self, gates: Tensor, is_first: bool) -> None:
        """Goes on for the steps of ``gates`` (at most ``steps``, B, G * H)."""
        lags, steps = self.shape.lags, self.shape.steps
        if not is_first:
            self.operand[:lags] = self.operand[steps:].clone()
            self.memories[0] = self.memories[steps]
        self.gates[: gates.size(0), : gates.size(1)] = gates
        self.replay()

    def read(self, hidden: Tensor, memories: Tensor, activations: Tensor | None) -> None:
        """Copies the results of the last run into (steps, S, B, ...)."""
        count, _, batch_size, _ = hidden.shape
        hidden.copy_(self.hidden[:count, :, :batch_size])
        memories.copy_(self.memories[1 : 1 + count, :, :batch_size])
        if activations is not None:
            activations.copy_(self.activations[:count, :, :batch_size])


class _Backward:
    """The buffers and the work of ``steps`` time steps, last to first.

    Fewer steps stand at the end of the buffers: what is computed before them is not read.
    """

    def __init__(self, shape: _Shape) -> None:
        self.shape = shape
        cell, lags, slots, batch, hidden, steps, *_ = shape
        memory = hidden if cell == "lstm" else 0
        self.weight = shape.zeros(_PRODUCT[cell] * hidden, lags * hidden)
        self.activations = shape.zeros(steps, slots, batch, _ACTIVATIONS[cell] * hidden)
        self.memories = shape.zeros(1 + steps, slots, batch, memory, compute=True)
        self.grad_hidden = shape.zeros(steps, slots, batch, hidden)
        self.grad_outer_memories = shape.zeros(steps, slots, batch, memory, compute=True)
        self.grad_operand = shape.zeros(steps + lags, slots, batch, lags, hidden)
        self.grad_memories = shape.zeros(1 + steps, slots, batch, memory, compute=True)
        self.grad_product = shape.zeros(steps, slots, batch, _PRODUCT[cell] * hidden)
        self.grad_gates = shape.zeros(steps, batch, GATES[cell] * hidden)
        self.replay = _captured(self.work, shape.device)

    def work(self) -> None:
        shape = self.shape
        rows = shape.slots * shape.batch
        for t in reversed(range(shape.steps)):
            shape.launch(
                backward_step,
                self.activations[t],
                self.memories[t],
                self.memories[t + 1],
                self.grad_hidden[t],
                self.grad_operand[t + 1 :],
                self.grad_memories[t + 1],
                self.grad_outer_memories[t],
                self.grad_product[t],
                self.grad_gates[t],
                self.grad_memories[t],
            )
            torch.mm(self.grad_product[t].view(rows, -1), self.weight, out=self.grad_operand[t].view(rows, -1))

    def start(self, weight: Tensor) -> None:
        self.weight.copy_(weight)

    def run(
        self,
        activations: Tensor,
        memories: Tensor,
        grad_hidden: Tensor,
        grad_memories: Tensor | None,
        is_last: bool,
    ) -> None:
        """Goes back through the steps of ``activations`` (at most ``steps``, S, B, A * H)."""
        steps, lags, count = self.shape.steps, self.shape.lags, activations.size(0)
        rows = slice(activations.size(2))
        if is_last:
            self.grad_operand[steps:] = 0
            self.grad_memories[steps] = 0
        else:
            self.grad_operand[steps:] = self.grad_operand[:lags].clone()
            self.grad_memories[steps] = self.grad_memories[0]
        first = steps - count
        self.activations[first:, :, rows] = activations
        self.memories[first:, :, rows] = memories
        self.grad_hidden[first:, :, rows] = grad_hidden
        self.grad_outer_memories[first:, :, rows] = 0 if grad_memories is None else grad_memories
        self.replay()

    def read(self, grad_product: Tensor, grad_gates: Tensor) -> None:
        """Copies the results of the last run."""
        count, batch_size, _ = grad_gates.shape
        grad_product.copy_(self.grad_product[-count:, :, :batch_size])
        grad_gates.copy_(self.grad_gates[-count:, :batch_size])

    def grad_state(self, count: int, batch_size: int) -> tuple[Tensor, Tensor]:
        """The gradients of history (L, S, B, H) and memory (S, B, H or 0) before the last run's ``count`` steps."""
        shape, first = self.shape, self.shape.steps - count
        grad_history = shape.zeros(shape.lags, shape.slots, batch_size, shape.hidden)
        for t in range(shape.lags):
            for lag in range(t, shape.lags):
                # With fewer than L steps in all, the operands behind them have zero gradients.
                step = self.grad_operand[first + t, :, :batch_size, lag]
                shift = slot_shift(lag + 1, shape.slots, shape.lags)
                grad_history[lag - t, : shape.slots - shift] += step[shift:]
        return grad_history, self.grad_memories[first, :, :batch_size].clone()


class _Programs:
    """The programs in use, the least recently used ones forgotten."""

    def __init__(self) -> None:
        self.made = 0
        self._programs: OrderedDict[tuple[type, _Shape], Any] = OrderedDict()

    def get(self, kind: type, shape: _Shape) -> Any:
        key = kind, shape
        if key not in self._programs:
            with torch.inference_mode(False), torch.no_grad():
                self._programs[key] = kind(shape)
            self.made += 1
            if len(self._programs) > GRAPHS_KEPT:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        return self._programs[key]


_programs = _Programs()


def _captured(work: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """``work`` as a CUDA graph; itself on a CPU."""
    if device.type != "cuda":
        return work
    with torch.cuda.device(device):
        # Compiles the kernels and makes the libraries' workspaces, neither of which can be captured.
        warm_up = torch.cuda.Stream()
        warm_up.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm_up):
            work()
        torch.cuda.current_stream().wait_stream(warm_up)
        graph = torch.cuda.CUDAGraph()
        # The backward pass runs in a thread of autograd's, beside others that may use the GPU.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            work()
    return graph.replay


def _history_of(t: int, slot: int, lag: int, shape: _Shape) -> int:
    """Which of the history's L * S outputs slot ``slot`` of the operand of step ``t`` holds for ``lag``, all from 0.

    L * S stands for none: zeros, or what a later step writes.
    """
    source_slot = slot - slot_shift(lag + 1, shape.slots, shape.lags)
    if lag < t or source_slot < 0:
        return shape.lags * shape.slots
    return (lag - t) * shape.slots + source_slot


def _bucket(batch_size: int) -> int:
    step = max(SMALLEST_BATCH, 1 << max(batch_size - 1, 1).bit_length() >> 3)
    return -(-batch_size // step) * step


def _compute_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
