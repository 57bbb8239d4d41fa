"""Which kernels run here, in a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import dispatch, extension
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


def summary(dtype: torch.dtype = torch.float32) -> str:
    """``kernels: C++ (MC-RNN, attention, scan)``: on what the operations run on the CPU in a precision, and why where
    C++ is off. What is not compiled yet is compiled now.

    Raises:
        InputError: FAIRSEQ_PLUGINS_BACKEND names no backend.
    """
    tensor = torch.zeros(1, dtype=dtype)
    by_backend: dict[str, list[str]] = {}
    for operation, (name, arguments) in _OPERATIONS.items():
        backend = dispatch.choose(operation, *arguments(tensor)).name
        by_backend.setdefault(_BACKENDS.get(backend, backend), []).append(name)
    running = ", ".join(f"{backend} ({', '.join(names)})" for backend, names in by_backend.items())
    off = "".join(f"; the C++ ones are off: {reason}" for reason in extension.reasons())
    return f"kernels: {running}{off}"


def summary_on_gpus() -> str:
    """The same for GPUs, which are not touched for it.

    Raises:
        InputError: FAIRSEQ_PLUGINS_BACKEND names no backend.
    """
    named = dispatch.named_backend() or "eager"
    return f"kernels: {_BACKENDS.get(named, f'{named} where it can')}, on GPUs"
