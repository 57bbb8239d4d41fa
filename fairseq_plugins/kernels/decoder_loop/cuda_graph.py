"""The loop as CUDA graphs of a fixed number of steps, forwards and backwards.

A step of a decoder is dozens of small operations, and a GPU does each sooner than a CPU launches it. A graph is
launched as one. It works in buffers that all graphs of a loop share, for as many rows as the next bucket has; rows and
steps beside the real ones are zero, and so are their gradients.

The backward graph computes its steps anew before it goes back through them: only the state before each graph is kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..captured_graphs import Programs, bucket, captured, capturing, precision, stream_of
from ..dispatch import BACKEND_VARIABLE
from ..second_derivatives import differentiable_once
from . import DecoderLoop, Tensors

# Steps of one graph.
STEPS = 8

Part = TypeVar("Part")


def refuses(like: Tensor) -> str | None:
    """Why it does not take a loop over tensors like this one, or None."""
    return None if like.is_cuda else f"it computes on GPUs, and the tensors are on {like.device.type}"


def decoder_loop(
    loop: DecoderLoop, inputs: Tensors, state: Tensors, constants: Tensors, parameters: Tensors
) -> tuple[Tensor, ...]:
    """See :func:`fairseq_plugins.kernels.decoder_loop.decoder_loop`. One thread at a time trains what owns the loop.

    Raises:
        RuntimeError: an operation cannot be captured; after that the process is of no more use.
    """
    groups = _Groups(inputs, state, constants, parameters)
    programs = _programs.setdefault(loop.owner, Programs())
    with programs.lock:
        try:
            program = programs.get(_Program, _Shape.of(loop, groups), loop, groups, programs)
        except torch.OutOfMemoryError:
            programs.clear()
            raise
        except RuntimeError as error:  # whatever CUDA calls it
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise RuntimeError(
                f"the decoder's steps cannot be a CUDA graph ({reason}): set {BACKEND_VARIABLE}=decoder_loop=eager"
            ) from error
        counts = len(inputs), len(state), len(constants)
        outputs: tuple[Tensor, ...] = _Loop.apply(
            program, programs, counts, *(part for group in groups for part in group)
        )
        return outputs


def captures(owner: object) -> int:
    """Programs captured so far for a loop's owner."""
    return _programs[owner].made if owner in _programs else 0


class _Groups(NamedTuple):
    """Tensors of a call by what they are to the loop."""

    inputs: Tensors
    state: Tensors
    constants: Tensors
    parameters: Tensors

    @classmethod
    def of(cls, tensors: Tensors, counts: tuple[int, int, int]) -> _Groups:
        return cls(*_split(tensors, counts))


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, program: _Program, programs: Programs, counts: tuple[int, int, int], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        groups = _Groups.of(tensors, counts)
        steps, rows = groups.inputs[0].shape[:2]
        outputs = [like.new_empty(steps, rows, *like.shape[2:]) for like in program.outputs]
        chunks = _chunks(steps)
        kept = [part.new_empty(len(chunks), *part.shape) for part in groups.state]
        program.start(groups)
        for chunk, (begin, end) in enumerate(chunks):
            for of_all, part in zip(kept, program.state, strict=True):
                of_all[chunk] = part[:rows]
            for buffer, given in zip(program.inputs, groups.inputs, strict=True):
                _fill(buffer, given[begin:end])
            program.forward()
            for of_all, part in zip(outputs, program.outputs, strict=True):
                of_all[begin:end] = part[: end - begin, :rows]
        ctx.save_for_backward(*kept, *tensors)
        ctx.counts, ctx.programs, ctx.program = counts, programs, program
        return tuple(outputs)

    @staticmethod
    @differentiable_once("eager")
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        counts, program = ctx.counts, ctx.program
        saved = ctx.saved_tensors  # once: a checkpoint hands them out one time
        kept, tensors = saved[: counts[1]], saved[counts[1] :]
        groups = _Groups.of(tensors, counts)
        steps, rows = groups.inputs[0].shape[:2]
        grad_inputs = [torch.empty_like(given) for given in groups.inputs]
        with ctx.programs.lock:
            program.start(groups)
            program.forget_gradients()
            for chunk, (begin, end) in reversed(list(enumerate(_chunks(steps)))):
                for buffer, of_all in zip(program.state, kept, strict=True):
                    buffer[:rows] = of_all[chunk]
                for buffer, given in zip(program.inputs, groups.inputs, strict=True):
                    _fill(buffer, given[begin:end])
                for buffer, given in zip(program.grad_outputs, grad_outputs, strict=True):
                    _fill(buffer, given[begin:end])
                program.backward()
                for of_all, part in zip(grad_inputs, program.gradients.inputs, strict=True):
                    of_all[begin:end] = part[: end - begin, :rows]
            found = program.gradients
            by_row = [gradient[:rows] for gradient in (*found.state, *found.constants)]
            # Those of the inputs are no buffers, which the next run would write over.
            gradients = [
                gradient.to(given.dtype, copy=i >= len(grad_inputs)) if is_needed and is_used else None
                for i, (gradient, given, is_needed, is_used) in enumerate(
                    zip(
                        (*grad_inputs, *by_row, *found.parameters),
                        tensors,
                        ctx.needs_input_grad[3:],
                        program.is_used,
                        strict=True,
                    )
                )
            ]
        return None, None, None, *gradients


class _Shape(NamedTuple):
    """What graphs are captured for."""

    variant: Hashable
    rows: int  # a bucket of numbers of rows
    sizes: tuple[tuple[torch.Size, torch.dtype], ...]  # of all tensors but for their steps and rows
    parameters: tuple[int, ...]  # where they are: a graph reads them there
    device: torch.device
    precision: str
    stream: int

    @classmethod
    def of(cls, loop: DecoderLoop, groups: _Groups) -> _Shape:
        given = groups.inputs[0]
        by_step = [(part.shape[2:], part.dtype) for part in groups.inputs]
        by_row = [(part.shape[1:], part.dtype) for part in (*groups.state, *groups.constants)]
        of_parameters = [(part.shape, part.dtype) for part in groups.parameters]
        return cls(
            loop.variant,
            bucket(given.size(1)),
            (*by_step, *by_row, *of_parameters),
            tuple(part.data_ptr() for part in groups.parameters),
            given.device,
            precision(),
            stream_of(given),
        )


class _Program:
    """The buffers and the graphs of ``STEPS`` steps."""

    def __init__(self, shape: _Shape, loop: DecoderLoop, groups: _Groups, programs: Programs) -> None:
        def buffers(what: str, parts: Tensors, *sizes: int, sums: bool = False) -> list[Tensor]:
            """Like these tensors, but for their first dimensions; as sums in which half precision does not lose."""
            return [
                programs.buffer(
                    (shape.stream, what, i),
                    (*sizes, *part.shape[len(sizes) :]),
                    _sum_dtype(part) if sums else part.dtype,
                    part.device,
                )
                for i, part in enumerate(parts)
            ]

        by_step = STEPS, shape.rows
        self.inputs = buffers("input", groups.inputs, *by_step)
        self.state = buffers("state", groups.state, shape.rows)
        self.constants = buffers("constant", groups.constants, shape.rows)
        parameters = [part.detach() for part in groups.parameters]
        read = _Groups(self.inputs, self.state, self.constants, parameters)
        with capturing():
            outputs, _ = loop.run(*read)
        self.outputs = buffers("output", outputs)
        self.grad_outputs = buffers("gradient of output", outputs)
        # Of inputs those of the last run; of the state those before it, which are those after the next one; of all
        # others the sums over the runs.
        self.gradients = _Groups(
            buffers("gradient of input", self.inputs),
            buffers("gradient of state", self.state),
            buffers("gradient of constant", self.constants, sums=True),
            buffers("gradient of parameter", parameters, sums=True),
        )
        self.is_used = [True] * sum(map(len, read))

        def forward() -> None:
            outputs, state = loop.run(*read)
            _copy(self.outputs, outputs)
            _copy(self.state, state)

        def backward() -> None:
            with torch.enable_grad():
                leaves = _Groups(*([_leaf(part) for part in group] for group in read))
                outputs, state = loop.run(*leaves)
            pairs = zip((*outputs, *state), (*self.grad_outputs, *self.gradients.state), strict=True)
            roots = [(root, gradient) for root, gradient in pairs if root.requires_grad]
            wanted = [leaf for group in leaves for leaf in group]
            found = iter(
                torch.autograd.grad(
                    [root for root, _ in roots],
                    [leaf for leaf in wanted if leaf.requires_grad],
                    [gradient for _, gradient in roots],
                    allow_unused=True,
                )
            )
            gradients = [next(found) if leaf.requires_grad else None for leaf in wanted]
            self.is_used = [gradient is not None for gradient in gradients]
            counts = len(self.inputs), len(self.state), len(self.constants)
            of_inputs, of_state, *summed = _split(gradients, counts)
            _copy(self.gradients.inputs, of_inputs)
            _copy(self.gradients.state, of_state)
            for sums, of_group in zip(self.gradients[2:], summed, strict=True):
                for total, gradient in zip(sums, of_group, strict=True):
                    if gradient is not None:
                        total += gradient

        memory = None
        if shape.device.type == "cuda":
            with torch.cuda.device(shape.device):
                memory = programs.memory(shape.stream)
        self.forward = captured(forward, shape.device, memory)
        self.backward = captured(backward, shape.device, memory)

    def start(self, groups: _Groups) -> None:
        """The state before the first step, and what all steps read."""
        for buffer, given in zip((*self.state, *self.constants), (*groups.state, *groups.constants), strict=True):
            _fill(buffer, given)

    def forget_gradients(self) -> None:
        """Before the last step is gone back through."""
        for gradient in (*self.gradients.state, *self.gradients.constants, *self.gradients.parameters):
            gradient.zero_()


def _split(parts: Sequence[Part], counts: Sequence[int]) -> list[Sequence[Part]]:
    """The first so many, the next, and so on, and in the end those that are left."""
    begins = [sum(counts[:i]) for i in range(len(counts) + 1)]
    return [parts[begin:end] for begin, end in zip(begins, [*begins[1:], len(parts)], strict=True)]


def _leaf(part: Tensor) -> Tensor:
    part = part.detach()
    return part.requires_grad_() if part.is_floating_point() else part


def _sum_dtype(part: Tensor) -> torch.dtype:
    return torch.promote_types(part.dtype, torch.float32) if part.is_floating_point() else part.dtype


def _copy(buffers: Sequence[Tensor], given: Sequence[Tensor | None]) -> None:
    """Into each buffer what is its own; zeros for nothing."""
    places = {buffer.untyped_storage().data_ptr() for buffer in buffers}
    # What goes through all steps unchanged is a buffer itself, and another's copy might come first.
    own = [part.clone() if part is not None and part.untyped_storage().data_ptr() in places else part for part in given]
    for buffer, part in zip(buffers, own, strict=True):
        if part is None:
            buffer.zero_()
        else:
            buffer.copy_(part)


def _fill(buffer: Tensor, given: Tensor) -> None:
    """Into the first elements of the buffer's dimensions what is given, and zeros into the others."""
    if buffer.shape != given.shape:
        buffer.zero_()
    buffer[tuple(map(slice, given.shape))] = given


def _chunks(steps: int) -> Sequence[tuple[int, int]]:
    return [(begin, min(begin + STEPS, steps)) for begin in range(0, steps, STEPS)]


_programs: weakref.WeakKeyDictionary[object, Programs] = weakref.WeakKeyDictionary()
