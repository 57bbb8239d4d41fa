"""What importing something could change outside itself; for programs that run in a process of their own."""

from __future__ import annotations

import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType

LIBRARIES = ("fairseq", "fairseq_cli", "numpy", "torch")
"""What the patches change something of."""


def fingerprint() -> dict[str, object]:
    """Place → what is there now: in the interpreter, and in the modules and classes of :data:`LIBRARIES`.

    Types are asked by ``type()``: PyTorch has objects that warn where ``isinstance`` looks at them.
    """
    return {**_of_interpreter(), **_of_libraries()}


def difference(before: dict[str, object]) -> list[str]:
    """The places where something is otherwise by now; what has been added since is one if it is fairseq's or numpy's.

    Of PyTorch parts are imported when they are needed.
    """
    now = fingerprint()
    added = [place for place in now.keys() - before.keys() if not place.startswith("torch")]
    return sorted([place for place in before if now.get(place) != before[place]] + added)


def _of_interpreter() -> dict[str, object]:
    import torch

    handlers = {f"signal {number}": signal.getsignal(number) for number in signal.valid_signals()}
    levels = {f"level of {name}": logging.getLogger(name).level for name in ("", "matplotlib", *LIBRARIES)}
    levels["level of fairseq's task"] = logging.getLogger("fairseq.tasks.text_to_speech").level
    return {
        "sys.excepthook": sys.excepthook,
        "sys.argv": list(sys.argv),
        "sys.path": list(sys.path),
        "sys.meta_path": list(map(id, sys.meta_path)),
        "os.environ": dict(os.environ),
        "warnings.filters": list(warnings.filters),
        "blocked signals": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "handlers of the root logger": list(logging.getLogger().handlers),
        "types that torch.load allows": len(torch.serialization.get_safe_globals()),
        "denormal numbers are zero": bool((torch.full((1,), 1e-39) * 2).eq(0)),
        "random numbers": torch.random.get_rng_state().tolist(),
        **handlers,
        **levels,
    }


def _of_libraries() -> dict[str, object]:
    return {
        f"{name}.{place}": value
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in LIBRARIES and issubclass(type(module), ModuleType)
        for place, value in _of_module(module)
    }


def _of_module(module: ModuleType) -> Iterator[tuple[str, object]]:
    for name, value in list(vars(module).items()):
        # Parts of a package that are imported later are no change.
        if issubclass(type(value), ModuleType) or name.startswith("__"):
            continue
        yield name, _value(value)
        if issubclass(type(value), type) and value.__module__ == module.__name__:
            for attribute, content in list(vars(value).items()):
                yield f"{name}.{attribute}", id(content)


def _value(value: object) -> object:
    """What is registered counts, too; PyTorch's own tables grow as it is used."""
    is_registry = type(value) is dict and all(isinstance(key, str) for key in value)
    return (id(value), tuple(value)) if is_registry else id(value)
