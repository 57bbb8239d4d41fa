"""Which backend runs an operation: one table, and each backend says whether it takes what it is given.

A backend is a module with a function ``refuses`` of the operation's arguments: the reason why it does not take them, or
None. It is imported when it is first considered. The first one of the table that takes them runs; one for GPUs does
where this machine's GPU has said that it is the fastest that is right (``verdicts.py``). The environment variable
FAIRSEQ_PLUGINS_BACKEND names another to begin with: for all operations (``eager``), or for each of some
(``multi_channel=cuda_graph,forget_scan=eager``).
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import torch

from ..errors import InputError
from . import verdicts
from .tracing import is_traced

logger = logging.getLogger(__name__)

BACKEND_VARIABLE = "FAIRSEQ_PLUGINS_BACKEND"


BACKENDS = {
    "reference": "reads like the paper, and is slow; all others are held to it",
    "autograd": "PyTorch operations alone",
    "eager": "PyTorch operations with a hand-written backward pass",
    "cpp": "C++ on CPUs, compiled on first use",
    "compiled": "PyTorch operations that torch.compile has compiled, on GPUs",
    "cuda_graph": "CUDA graphs of many small operations, on GPUs",
    "triton": "one Triton kernel, on GPUs",
    "onednn": "oneDNN's matrix products, on CPUs",
    "random_bits": "dropout with 16 random bits for each element in PyTorch operations, on CPUs",
    "pytorch": "PyTorch's own dropout",
}
"""What FAIRSEQ_PLUGINS_BACKEND may name, with a sentence each."""


class Backend(NamedTuple):
    """A row's entry.

    Attributes:
        name: what FAIRSEQ_PLUGINS_BACKEND calls it.
        module: where it is, from this folder.
        needs: a package that it cannot be imported without.
        is_measured: whether it is for GPUs, and runs where it was found to be right and the fastest.
        starts_slowly: whether it takes so long to start that a training does not wait for it to be compared.
        is_traceable: whether PyTorch can write down its operations, for an export.
        has_own_backward: whether its gradient is none of PyTorch's, which torch.func and torch.export refuse.
    """

    name: str
    module: str
    needs: str = ""
    is_measured: bool = False
    starts_slowly: bool = False
    is_traceable: bool = True
    has_own_backward: bool = False


OPERATIONS: dict[str, tuple[Backend, ...]] = {
    "multi_channel": (
        Backend("cuda_graph", "multi_channel.cuda_graph", needs="triton", is_measured=True),
        Backend("compiled", "multi_channel.compiled", is_measured=True, starts_slowly=True),
        Backend("cpp", "multi_channel.cpu", is_traceable=False),
        Backend("eager", "multi_channel.eager", has_own_backward=True),
        Backend("autograd", "multi_channel.autograd"),
        Backend("reference", "multi_channel.reference"),
    ),
    "forget_scan": (
        Backend("triton", "forget_scan.triton", needs="triton", is_measured=True),
        Backend("cpp", "forget_scan.cpu", is_traceable=False),
        Backend("eager", "forget_scan.eager", has_own_backward=True),
        Backend("reference", "forget_scan.reference"),
    ),
    "additive_attention": (
        Backend("cpp", "additive_attention.cpu", is_traceable=False),
        Backend("eager", "additive_attention.eager"),
        Backend("reference", "additive_attention.reference"),
    ),
    "decoder_loop": (
        Backend("cuda_graph", "decoder_loop.cuda_graph", is_measured=True),
        Backend("eager", "decoder_loop.eager"),
        # The same: it is written once, and whoever names one of these wants no graphs.
        Backend("autograd", "decoder_loop.eager"),
        Backend("reference", "decoder_loop.eager"),
    ),
    "packed_sentences": (
        Backend("cpp", "packed_sentences.cpu", is_traceable=False),
        Backend("reference", "packed_sentences.reference"),
    ),
    "linear": (
        Backend("onednn", "linear.onednn", is_traceable=False),
        Backend("reference", "linear.reference"),
    ),
    "best_tokens": (
        Backend("cpp", "best_tokens.cpu", is_traceable=False),
        Backend("reference", "best_tokens.reference"),
    ),
    "dot_product_attention": (
        Backend("cpp", "dot_product_attention.cpu", is_traceable=False),
        Backend("reference", "dot_product_attention.reference"),
    ),
    "dropout": (
        Backend("cpp", "dropout.cpu", is_traceable=False),
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
    named = named_backend(operation)
    backends = OPERATIONS[operation]
    names = [backend.name for backend in backends]
    first = names.index(named) if named in names else 0
    refused: dict[str, str] = {}
    is_transformed = is_traced()
    is_exported = is_transformed or torch.onnx.is_in_onnx_export()
    for backend in backends[first:]:
        reason = verdicts.refusal(operation, backend.name) if backend.is_measured and backend.name != named else None
        if is_exported and not backend.is_traceable:
            reason = "an export writes down PyTorch's operations alone"
        if is_transformed and backend.has_own_backward:
            reason = "PyTorch transforms its own gradients alone"
        if reason is None:
            module = module_of(backend)
            reason = module.refuses(*arguments)
            if reason is None:
                return Choice(backend.name, module, refused)
            if backend.name == named:
                _say_once(f"{BACKEND_VARIABLE}={named}: {operation} runs on another backend where {reason}")
        refused[backend.name] = reason
    raise RuntimeError(f"no backend takes this {operation}: {refused}")


def named_backend(operation: str) -> str | None:
    """What FAIRSEQ_PLUGINS_BACKEND names for an operation, or None.

    Raises:
        InputError: it names what is no backend of any operation, or no operation.
    """
    text = os.environ.get(BACKEND_VARIABLE)
    return _named(text).get(operation) if text else None


def naming(backends: Mapping[str, str]) -> str:
    """What FAIRSEQ_PLUGINS_BACKEND has to be for operations to run on these backends."""
    return ",".join(f"{operation}={name}" for operation, name in backends.items())


@functools.cache
def _named(text: str) -> dict[str, str]:
    """By operation, what a value of FAIRSEQ_PLUGINS_BACKEND names."""
    by_operation = dict.fromkeys(OPERATIONS, text)
    if "=" in text:
        by_operation = dict(part.strip().partition("=")[::2] for part in text.split(","))
    for operation, name in by_operation.items():
        if operation not in OPERATIONS:
            raise InputError(
                f"{BACKEND_VARIABLE}={text}: no operation {operation}; choose from {', '.join(OPERATIONS)}"
            )
        if name not in BACKENDS:
            raise InputError(f"{BACKEND_VARIABLE}={text}: no such backend; choose from {', '.join(BACKENDS)}")
    return by_operation


def module_of(backend: Backend) -> ModuleType:
    """The module of a backend, imported now if it never was.

    Raises:
        InputError: it lacks a package.
    """
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
