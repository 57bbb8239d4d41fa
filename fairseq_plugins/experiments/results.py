"""``results.json``: what one experiment was and what came out of it."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ..corpora.preparation import PREPARATION
from ..errors import InputError
from ..files import atomic_file
from .commands import PreparedData, option
from .config import CHECKOUT

PACKAGES = (
    "fairseq-plugins",
    "fairseq-fixed",
    "fairseq",
    "torch",
    "numpy",
    "sacrebleu",
    "sacremoses",
    "sentencepiece",
    "subword-nmt",
)


def load(work: Path) -> dict[str, Any]:
    """The results in a work folder; empty when there are none yet."""
    path = work / "results.json"
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); delete it: training and evaluation write it anew") from None


def write(work: Path, results: dict[str, Any]) -> None:
    """Replaces a work folder's ``results.json``."""
    with atomic_file(work / "results.json") as stream:
        json.dump(results, stream, indent=2, ensure_ascii=False)
        stream.write("\n")


def update(work: Path, **values: Any) -> None:
    """Sets keys in a work folder's ``results.json`` and keeps the others."""
    write(work, {**load(work), **values})


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


def git_revision() -> str | None:
    """The checkout's commit, with ``-dirty`` when files of the repository are changed; None outside of git."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(CHECKOUT), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("-dirty" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def device(command: Sequence[str]) -> str:
    """What a fairseq-train command computes on: ``2 x NVIDIA A100``, or ``CPU, 1 thread``."""
    import torch

    if "--cpu" not in command:
        return f"{option(command, '--distributed-world-size')} x {torch.cuda.get_device_name(0)}"
    threads = int(os.environ.get("OMP_NUM_THREADS") or torch.get_num_threads())
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"
