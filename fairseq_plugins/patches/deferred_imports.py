"""Imports of fairseq that take seconds, put off until they are needed. Standard library only, and nothing of ours:
``fairseq_program.py`` runs this file by itself."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

IMPORTERS = ("fairseq.criterions.sentence_prediction", "fairseq.tasks.audio_classification")
"""The modules of fairseq whose imports are deferred."""
FUNCTIONS = {
    "sklearn.metrics": ("f1_score", "matthews_corrcoef", "roc_curve"),
    "scipy.stats": ("pearsonr", "spearmanr"),
}
"""Module, inside a package → its functions that they use."""


def defer_imports() -> None:
    """Puts off scikit-learn and SciPy's statistics, which fairseq imports for two modules that hardly a command uses.

    They are imported when one of their functions is called. Nothing is put off where fairseq is imported already.

    For fairseq 0.12; fairseq 0.12.2 has one of the two modules only.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds the modules of fairseq as Python does, and has them see stand-ins while they are executed."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in IMPORTERS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_with_stand_ins(module: ModuleType) -> None:
            with _stand_ins():
                execute(module)

        spec.loader.exec_module = execute_with_stand_ins  # type: ignore[method-assign]  # this loader alone, for fairseq's module
        return spec


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Modules that are there already stay as they are, and no other is left in ``sys.modules`` afterwards."""
    modules: dict[str, ModuleType] = {}
    for name, functions in FUNCTIONS.items():
        package, _, last = name.partition(".")
        if package in sys.modules:
            continue
        modules |= {package: ModuleType(package), name: ModuleType(name)}
        setattr(modules[package], last, modules[name])
        for function in functions:
            setattr(modules[name], function, _deferred(name, function))
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]


def _deferred(module: str, name: str) -> Callable:
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    return call
