"""``results.json``: what one experiment was and what came out of it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import extensions
from ..corpora.preparation import PREPARATION
from ..errors import InputError
from ..files import locked, write_json
from ..package_files import IS_CHECKOUT, ROOT
from ..scoring.metrics import metrics_of
from .fairseq_commands import option
from .prepared_data import PreparedData

# What results depend on.
PACKAGES = (
    "fairseq-plugins",
    "fairseq-fixed",
    "fairseq",
    "torch",
    "numpy",
    "pytrec-eval-terrier",
    "sacrebleu",
    "sacremoses",
    "sentencepiece",
    "subword-nmt",
)


def load(work: Path) -> dict[str, Any]:
    """The results in a work folder; empty when there are none yet.

    Raises:
        InputError: the file is damaged.
    """
    path = work / "results.json"
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); delete it: training and evaluation write it anew") from None
    parts = (("subsets", dict), ("extensions", list))
    if not isinstance(found, dict) or not all(isinstance(found.get(name, kind()), kind) for name, kind in parts):
        raise InputError(f"{path}: not the results of an experiment; delete it: training and evaluation write it anew")
    return found


def required(work: Path) -> dict[str, Any]:
    """The results in a work folder.

    Raises:
        InputError: there are none.
    """
    found = load(work)
    if not found:
        raise InputError(
            f"{work / 'results.json'}: no such file; run 'fairseq-plugins train' first, or give its --work"
        )
    return found


def write(work: Path, results: dict[str, Any]) -> None:
    """Replaces a work folder's ``results.json``."""
    write_json(work / "results.json", results)


@contextlib.contextmanager
def changing(work: Path) -> Iterator[dict[str, Any]]:
    """Yields what :func:`load` finds, while nobody else changes it."""
    with locked(work / ".results.lock"):
        yield load(work)


def update(work: Path, **values: Any) -> None:
    """Sets keys in a work folder's ``results.json`` and keeps the others; several processes may do so at once.

    Of ``subsets`` the sets that are given are set.
    """
    with changing(work) as found:
        if "subsets" in values:
            values["subsets"] = {**found.get("subsets", {}), **values["subsets"]}
        write(work, {**found, **values})


def overview(works: Mapping[str, Path]) -> tuple[list[dict[str, Any]], list[str]]:
    """Systems side by side, a row each: what they are, and their scores on the test set; and how these were computed.

    Args:
        works: system → work folder, with a ``results.json``
    """
    found = {name: load(work) for name, work in works.items()}
    metrics = metrics_of({key for results in found.values() for key in results})
    columns = [column for metric in metrics for column in metric.columns]
    rows = [
        {
            "system": name,
            "parameters": results.get("parameters"),
            "updates": results.get("updates"),
            "training seconds": results.get("train_seconds"),
            **{column.label: results.get(column.key) for column in columns},
        }
        for name, results in found.items()
    ]
    explained = (line for results in found.values() for metric in metrics for line in metric.explanations(results))
    return rows, list(dict.fromkeys(explained))


def configuration_name(path: Path) -> str:
    """A configuration's path as ``results.json`` has it: below :data:`.ROOT`, or absolute."""
    path = path.resolve()
    return str(path.relative_to(ROOT.resolve()) if path.is_relative_to(ROOT.resolve()) else path)


def configuration_path(found: Mapping[str, Any]) -> Path | None:
    """The configuration that a training was started with; it may have gone since. None where none is known."""
    return ROOT / found["config"] if "config" in found else None


def is_evaluated(found: Mapping[str, Any]) -> bool:
    """Whether what ``generate/`` has of the test set is of the present model: a training that goes on takes the
    scores away, and leaves the outputs."""
    return "checkpoint" in found


def command(found: Mapping[str, Any]) -> list[str]:
    """The command of an experiment's training, or else of a translation; both name the data first."""
    subsets = found.get("subsets", {}).values()
    known = [found.get("command"), *(part.get("generate_command") for part in (found, *subsets))]
    return shlex.split(next(filter(None, known), ""))


def prepared_data(found: Mapping[str, Any]) -> PreparedData | None:
    """The data that an experiment's commands read; None where it is not there any more."""
    arguments = command(found)
    if not arguments or not (Path(arguments[1]).parent / PREPARATION).is_file():
        return None
    return PreparedData.load(Path(arguments[1]).parent)


def load_extensions(found: Mapping[str, Any]) -> None:
    """Imports the extensions that an experiment was made with.

    Raises:
        InputError: one is missing, or cannot be imported.
    """
    extensions.add(map(Path, found.get("extensions", ())))


def load_extensions_of(checkpoints: Iterable[str | Path]) -> None:
    """Imports the extensions that checkpoints were trained with, where their work folder has its ``results.json``.

    Raises:
        InputError: one is missing, or cannot be imported.
    """
    for checkpoint in checkpoints:
        try:
            found = load(Path(checkpoint).absolute().parent.parent)
        except InputError:
            # A checkpoint may lie anywhere, beside anybody's results.json.
            continue
        load_extensions(found)


def git_revision() -> str | None:
    """The checkout's commit, with ``-dirty`` when files of the repository are changed; None outside of git.

    Records in ``results/`` do not count: nothing is computed by them, and the run before has written its own.
    """
    if not IS_CHECKOUT:  # the folder may be part of a repository of the user's own
        return None

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")
        return git("rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def machine() -> dict[str, Any]:
    """What computes here: ``processor``, its ``cores``, and the ``threads`` that PyTorch takes."""
    import torch

    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    threads = int(os.environ.get("OMP_NUM_THREADS") or torch.get_num_threads())
    processor = next(named, "") or platform.processor() or platform.machine()
    return {"processor": processor, "cores": os.cpu_count(), "threads": threads}


def device(command: Sequence[str]) -> str:
    """What a fairseq-train command computes on: ``2 x NVIDIA A100``, or ``CPU, 1 thread``."""
    import torch

    if "--cpu" not in command:
        return f"{option(command, '--distributed-world-size')} x {torch.cuda.get_device_name(0)}"
    threads = int(os.environ.get("OMP_NUM_THREADS") or torch.get_num_threads())
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"
