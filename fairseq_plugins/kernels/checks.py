"""What a recurrent layer is called with, held against what it was built with before anything reads memory by it.

torch's own functions for whole sequences check nothing (``torch.nn.LSTM`` does it for them): a row too few is read from
memory that is not ours. Elsewhere one row would be taken for one that holds for all.

Symbols: B batch, T time steps, D input size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast, overload

import torch
from torch import Tensor

from .autocast import is_autocast
from .padding import padding_mask
from .tracing import is_traced

State = tuple[Tensor, ...]
"""A NamedTuple of tensors with the batch first."""


def check_sequence(
    x: Tensor, lengths: Tensor | None, state: State | None, input_size: int, like: Tensor, start: State = ()
) -> tuple[Tensor, Tensor | None]:
    """Checks what a layer is called with for a sequence, and takes out what is at padding.

    Infinities and NaN there would change other rows: by what they are multiplied with in a gradient, though that is 0.

    Args:
        x: (T, B, D), right-padded.
        lengths: (B,) real tokens of each row; None if there is no padding.
        state: what the layer goes on from; None where it starts anew.
        input_size: D.
        like: one of the parameters: x is where it is and of its precision, under autocast of any that it casts.
        start: a state of no rows; it is read where there is a state.

    Returns:
        x, zero at padding, and ``lengths`` as int64.

    Raises:
        ValueError: one of them is not as it must be; the message says which.
    """
    _check_input(x, "TBD", input_size, like)
    lengths = checked_lengths(lengths, x)
    if state is not None:
        _check_state(state, start, x.size(1))
    if lengths is None:
        return x, None
    return x.masked_fill(padding_mask(lengths, x.size(0)).unsqueeze(-1), 0), lengths


class StepCheck:
    """Checks what the steps of a layer are called with: x (B, D) and a state.

    Args:
        input_size: D.
        like: one of the parameters, as in :func:`check_sequence`.
        start: a state of no rows.
    """

    def __init__(self, input_size: int, like: Tensor, start: State) -> None:
        self._input_size, self._like, self._start = input_size, like.detach(), start
        self._dtypes = [like.dtype, *(part.dtype for part in start)]
        self._devices = [like.device, *(part.device for part in start)]
        self._shapes: list[torch.Size] = []

    def __call__(self, x: Tensor, state: State) -> None:
        """Raises ValueError as :func:`check_sequence` does."""
        if self._is_as_before(x, state):
            return
        _check_input(x, "BD", self._input_size, self._like)
        _check_state(state, self._start, x.size(0))
        self._shapes = [x.shape, *(part.shape for part in state)]

    def _is_as_before(self, x: Tensor, state: State) -> bool:
        # Nearly always: a decoding step has no time for more.
        if type(state) is not type(self._start):
            return False
        tensors = (x, *state)
        try:
            return (
                [tensor.shape for tensor in tensors] == self._shapes
                and [tensor.dtype for tensor in tensors] == self._dtypes
                and [tensor.device for tensor in tensors] == self._devices
            )
        except AttributeError:
            return False


def check_number(states: Sequence[object] | None, layers: int) -> None:
    """Raises ValueError where a stack of so many layers is given states, but not one for each."""
    if states is not None and len(states) != layers:
        raise ValueError(f"the stack has {layers} layers, and there are {len(states)} states")


@overload
def checked_lengths(lengths: Tensor, x: Tensor, least: int = 0) -> Tensor: ...
@overload
def checked_lengths(lengths: Tensor | None, x: Tensor, least: int = 0) -> Tensor | None: ...
def checked_lengths(lengths: Tensor | None, x: Tensor, least: int = 0) -> Tensor | None:
    """``lengths`` as int64, or None.

    Args:
        lengths: (B,) of any type of whole numbers; None if there is no padding.
        x: (T, B, ...).
        least: the smallest that one may be.

    Raises:
        ValueError: they are not one whole number for each row of x; or one of them, on the CPU, is not in ``least`` ...
            T. What is on a GPU is not looked at, since that would have to wait for all that the GPU still has to do,
            and what PyTorch traces has no numbers.
    """
    if lengths is None:
        return None
    steps, batch_size = x.shape[:2]
    is_whole = not (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool)
    if lengths.shape != (batch_size,) or not is_whole:
        described = f"{_name(lengths.dtype)} of shape {tuple(lengths.shape)}"
        raise ValueError(f"lengths must be {batch_size} whole numbers, one for each row, not {described}")
    if lengths.device != x.device:
        raise ValueError(f"lengths must be on {x.device}, as x is, not on {lengths.device}")
    if lengths.device.type == "cpu" and batch_size and not is_traced():
        smallest, largest = (int(bound) for bound in lengths.aminmax())
        if smallest < least or largest > steps:
            raise ValueError(
                f"lengths must be from {least} to the {steps} steps of x, not from {smallest} to {largest}"
            )
    return lengths.long()


def checked_start(name: str, start: Tensor | None, batch_size: int, size: int, like: Tensor) -> Tensor:
    """What each row of a state starts from: ``start`` (B, size), or zeros of ``like``'s precision where it is None.

    Args:
        name: what the message calls it.
        start: h0 or c0.
        batch_size: B.
        size: its width.
        like: one of the parameters, as in :func:`check_sequence`.

    Raises:
        ValueError: ``start`` has another width, number of rows, precision or device.
    """
    if start is None:
        return like.new_zeros(batch_size, size)
    check_tensor(name, start, (batch_size, size), like)
    return start


def check_tensor(name: str, tensor: Tensor, sizes: tuple[int | str, ...], like: Tensor) -> None:
    """Checks one argument of an operation.

    Args:
        name: what the message calls it.
        tensor: the argument.
        sizes: of each dimension, or its letter where it may be any.
        like: it has the precision (under autocast any that it casts) and the device of this one.

    Raises:
        ValueError: it is not so.
    """
    shape = tensor.shape
    is_right = len(shape) == len(sizes) and all(
        isinstance(size, str) or size == length for size, length in zip(sizes, shape, strict=True)
    )
    if not is_right:
        raise ValueError(f"{name} must be of shape ({', '.join(map(str, sizes))}), not {tuple(shape)}")
    if tensor.device != like.device:
        raise ValueError(f"{name} must be on {like.device}, not on {tensor.device}")
    if tensor.dtype != like.dtype and not _is_cast(tensor, like):
        raise ValueError(f"{name} must be of {_name(like.dtype)}, not of {_name(tensor.dtype)}")


def check_mask(name: str, mask: Tensor, x: Tensor) -> None:
    """Checks a mask of bools (B, T) of x (B, T, ...).

    Raises:
        ValueError: it is none.
    """
    if mask.shape != x.shape[:2] or mask.dtype != torch.bool:
        raise ValueError(
            f"{name} must be bool of shape {tuple(x.shape[:2])}, not {_name(mask.dtype)} of shape {tuple(mask.shape)}"
        )
    if mask.device != x.device:
        raise ValueError(f"{name} must be on {x.device}, not on {mask.device}")


def _check_input(x: Tensor, dimensions: str, input_size: int, like: Tensor) -> None:
    if x.dim() != len(dimensions):
        raise ValueError(
            f"input must have {len(dimensions)} dimensions ({', '.join(dimensions)}), not {x.dim()}: {tuple(x.shape)}"
        )
    if x.size(-1) != input_size:
        raise ValueError(f"input must have width {input_size}, not {x.size(-1)}")
    check_tensor("input", x, tuple(x.shape), like)


def _check_state(state: State, start: State, rows: int) -> None:
    kind = type(start)
    if not isinstance(state, kind) or not all(isinstance(part, Tensor) for part in state):
        raise ValueError(f"the state must be a {kind.__name__} of tensors, not {_described(state)}")
    names = cast("type[NamedTuple]", kind)._fields
    for name, part, like in zip(names, state, start, strict=True):
        if part.dim() == like.dim() and part.size(0) != rows:
            raise ValueError(f"the state has {part.size(0)} rows, the input {rows}")
        if part.dtype == torch.float32 and like.dtype in (torch.float16, torch.bfloat16):
            # A backend may keep what it sums in single precision.
            like = like.float()
        check_tensor(f"{name} of the state", part, (rows, *like.shape[1:]), like)


def _is_cast(tensor: Tensor, like: Tensor) -> bool:
    """Whether autocast makes both of one precision."""
    if not is_autocast(tensor.device.type):
        return False
    return {tensor.dtype, like.dtype} <= {torch.float32, torch.float16, torch.bfloat16}


def _described(state: object) -> str:
    name = type(state).__name__
    if isinstance(state, tuple):
        return f"a {name} of {', '.join(type(part).__name__ for part in state)}"
    return f"a {name}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
