"""Which kernels run here, in a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import dispatch, extension, verdicts
from .multi_channel.specification import MultiChannelLayer, MultiChannelParameters, MultiChannelSpecification

_BACKENDS = {"cpp": "C++", "eager": "PyTorch operations"}


def _layer(weight: Tensor) -> tuple[MultiChannelLayer, int]:
    parameters = MultiChannelParameters(weight, None, weight, weight, weight, None, None)
    return MultiChannelLayer(MultiChannelSpecification(), parameters), 1


# Operations that have C++ kernels: what each is called, and arguments by which a backend is chosen.
_OPERATIONS: dict[str, tuple[str, Callable[[Tensor], tuple[Any, ...]]]] = {
    "multi_channel": ("MC-RNN", _layer),
    "additive_attention": ("attention", lambda tensor: (tensor, tensor, tensor)),
    "forget_scan": ("scan", lambda tensor: (tensor,)),
}


# Operations that GPUs have kernels for: what each is called.
_ON_GPUS = {**{operation: name for operation, (name, _) in _OPERATIONS.items()}, "decoder_loop": "decoder's steps"}


def summary(dtype: torch.dtype = torch.float32) -> str:
    """``kernels: C++ (MC-RNN, attention, scan)``: on what the operations run on the CPU in a precision, and why where
    C++ is off. What is not compiled yet is compiled now.

    Raises:
        InputError: FAIRSEQ_PLUGINS_BACKEND names no backend.
    """
    running = _by_backend(backends_on_cpu(dtype))
    off = "".join(f"; the C++ ones are off: {reason}" for reason in extension.reasons())
    return f"kernels: {running}{off}"


def summary_on_gpus() -> str:
    """The same for GPUs, which are not touched for it.

    Raises:
        InputError: FAIRSEQ_PLUGINS_BACKEND names no backend.
    """
    return f"kernels: {_by_backend(backends_on_gpus())}, on GPUs"


def backends_on_gpus() -> dict[str, str]:
    """On what the operations run on GPUs, by operation: what is named, or else what this machine's GPU has said.

    Raises:
        InputError: FAIRSEQ_PLUGINS_BACKEND names no backend.
    """
    machine_verdicts = verdicts.of_this_machine()
    backends = {}
    for operation in _ON_GPUS:
        named = dispatch.named_backend(operation)
        has_it = any(backend.name == named for backend in dispatch.OPERATIONS[operation])
        backends[operation] = named if named and has_it else verdicts.fastest(machine_verdicts, operation)
    return backends


def backends_on_cpu(dtype: torch.dtype = torch.float32) -> dict[str, str]:
    """On what they run on the CPU in a precision, by operation; what is not compiled yet is compiled now.

    Raises:
        InputError: FAIRSEQ_PLUGINS_BACKEND names no backend.
    """
    tensor = torch.zeros(1, dtype=dtype)
    return {
        operation: dispatch.choose(operation, *arguments(tensor)).name
        for operation, (_, arguments) in _OPERATIONS.items()
    }


def _by_backend(backends: dict[str, str]) -> str:
    names: dict[str, list[str]] = {}
    for operation, backend in backends.items():
        names.setdefault(_BACKENDS.get(backend, backend), []).append(_ON_GPUS[operation])
    return ", ".join(f"{backend} ({', '.join(operations)})" for backend, operations in names.items())
