"""Which backend runs an operation: one table, and each backend says whether it takes what it is given.

A backend is a module with a function ``refuses`` of the operation's arguments: the reason why it does not take them, or
None. It is imported when it is first considered. The first one of the table that takes them runs. The environment
variable FAIRSEQ_PLUGINS_BACKEND names another to begin with.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
from types import ModuleType
from typing import Any, NamedTuple

from ..errors import InputError

logger = logging.getLogger(__name__)

BACKEND_VARIABLE = "FAIRSEQ_PLUGINS_BACKEND"


BACKENDS = {
    "reference": "reads like the paper, and is slow; all others are held to it",
    "autograd": "PyTorch operations alone",
    "eager": "PyTorch operations with a hand-written backward pass",
    "cpp": "C++ on CPUs, compiled on first use",
    "cuda_graph": "CUDA graphs of matrix products and Triton kernels, on GPUs",
    "triton": "one Triton kernel, on GPUs",
    "onednn": "oneDNN's matrix products, on CPUs",
    "random_bits": "dropout with 16 random bits for each element, on CPUs",
    "pytorch": "PyTorch's own dropout",
}
"""What FAIRSEQ_PLUGINS_BACKEND may name, with a sentence each."""


class Backend(NamedTuple):
    """A row's entry.

    Attributes:
        name: what FAIRSEQ_PLUGINS_BACKEND calls it.
        module: where it is, from this folder.
        needs: a package that it cannot be imported without.
        only_by_name: why it runs only where it is named; empty for all others.
    """

    name: str
    module: str
    needs: str = ""
    only_by_name: str = ""


OPERATIONS: dict[str, tuple[Backend, ...]] = {
    "multi_channel": (
        Backend("cuda_graph", "multi_channel.cuda_graph", needs="triton", only_by_name="no GPU has tested it yet"),
        Backend("cpp", "multi_channel.cpu"),
        Backend("eager", "multi_channel.eager"),
        Backend("autograd", "multi_channel.autograd"),
        Backend("reference", "multi_channel.reference"),
    ),
    "forget_scan": (
        Backend("triton", "forget_scan.triton", needs="triton", only_by_name="no GPU has tested it yet"),
        Backend("cpp", "forget_scan.cpu"),
        Backend("eager", "forget_scan.eager"),
        Backend("reference", "forget_scan.reference"),
    ),
    "additive_attention": (
        Backend("cpp", "additive_attention.cpu"),
        Backend("eager", "additive_attention.eager"),
        Backend("reference", "additive_attention.reference"),
    ),
    "linear": (
        Backend("onednn", "linear.onednn"),
        Backend("reference", "linear.reference"),
    ),
    "dropout": (
        Backend("random_bits", "dropout.random_bits"),
        # Not called the reference: a training with other kernels drops the same.
        Backend("pytorch", "dropout.pytorch"),
    ),
    "output_cross_entropy": (
        Backend("eager", "output_cross_entropy.eager"),
        Backend("reference", "output_cross_entropy.reference"),
    ),
}
"""The backends of each operation in order of preference; the last one takes everything."""


class Choice(NamedTuple):
    """The backend that runs, and why those before it do not."""

    name: str
    module: ModuleType
    refused: dict[str, str]


def choose(operation: str, *arguments: Any) -> Choice:
    """The first backend of the table that takes the arguments, from the one that FAIRSEQ_PLUGINS_BACKEND names on.

    Raises:
        InputError: the variable names no backend of any operation, or one that lacks a package.
    """
    named = named_backend()
    backends = OPERATIONS[operation]
    names = [backend.name for backend in backends]
    first = names.index(named) if named in names else 0
    refused: dict[str, str] = {}
    for backend in backends[first:]:
        reason = backend.only_by_name if backend.name != named else ""
        if not reason:
            module = _module(backend)
            reason = module.refuses(*arguments)
            if reason is None:
                return Choice(backend.name, module, refused)
            if backend.name == named:
                _say_once(f"{BACKEND_VARIABLE}={named}: {operation} runs on another backend where {reason}")
        refused[backend.name] = reason
    raise RuntimeError(f"no backend takes this {operation}: {refused}")


def named_backend() -> str | None:
    """What FAIRSEQ_PLUGINS_BACKEND names, or None.

    Raises:
        InputError: it is no backend of any operation.
    """
    name = os.environ.get(BACKEND_VARIABLE)
    if not name:
        return None
    if name not in BACKENDS:
        raise InputError(f"{BACKEND_VARIABLE}={name}: no such backend; choose from {', '.join(BACKENDS)}")
    return name


def _module(backend: Backend) -> ModuleType:
    try:
        return importlib.import_module(f".{backend.module}", __package__)
    except ModuleNotFoundError as error:
        if not backend.needs or error.name is None or error.name.partition(".")[0] != backend.needs:
            raise
        raise InputError(
            f"{BACKEND_VARIABLE}={backend.name} needs {backend.needs}: pip install {backend.needs}"
        ) from error


@functools.cache
def _say_once(message: str) -> None:
    logger.info(message)
