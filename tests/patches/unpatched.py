"""fairseq without a patch, and what a test says where that has no fault."""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairseq_plugins.patches.replacing import REPLACED


def original_of(owner: object, name: str) -> Any:
    """What ``owner.name`` was before any patch."""
    value = getattr(owner, name)
    while hasattr(value, REPLACED):
        value = value.__bases__[0] if isinstance(value, type) else value.__wrapped__
    return value


def needless(patch: Callable[[], None]) -> str:
    """What a test says where the fault is gone."""
    file = Path(inspect.getfile(patch)).name
    return f"fairseq no longer needs {patch.__name__}: remove it from fairseq_plugins/patches/{file}"


@contextlib.contextmanager
def fault_of(patch: Callable[[], None], *errors: type[BaseException]) -> Iterator[None]:
    """Fails, unless what is inside fails with one of these errors."""
    try:
        yield
    except errors:
        return
    pytest.fail(needless(patch))


def for_fairseq_fixed(patch: Callable[[], None]) -> None:
    """Skips the test with fairseq 0.12.2, which has not the fault of this patch."""
    try:
        importlib.metadata.version("fairseq-fixed")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{patch.__name__} is for fairseq-fixed")


@dataclass(frozen=True)
class Unpatched:
    """What a process without patches shows.

    Attributes:
        imported: which slow packages importing fairseq imports
        warnings: where the warnings come from that parsing a command line causes
        imports_compiler: whether making an optimizer imports PyTorch's compiler
        level_of_matplotlib: from which level on it logs, after fairseq has been imported
    """

    imported: list[str]
    warnings: list[str]
    imports_compiler: bool
    level_of_matplotlib: int


UNPATCHED = """
import json, logging, sys, warnings
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim.adam import Adam

imported = sorted({"scipy", "sklearn"} & sys.modules.keys())
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    parsed = options.parse_args_and_arch(options.get_training_parser(), ["data", "--arch", "lstm"])
    convert_namespace_to_omegaconf(parsed)
assert "torch._dynamo" not in sys.modules
Adam([torch.nn.Parameter(torch.ones(1))])
print(json.dumps({
    "imported": imported,
    "warnings": [warning.filename for warning in seen],
    "imports_compiler": "torch._dynamo" in sys.modules,
    "level_of_matplotlib": logging.getLogger("matplotlib").getEffectiveLevel(),
}))
"""
"""The program that shows it."""
