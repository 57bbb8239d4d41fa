"""What this machine's GPU has said of the backends for GPUs: which compute what the reference does, and how fast.

``comparison.py`` asks it. The answer is kept in the cache folder, for as long as GPU, driver, PyTorch, Triton and this
project are the same. A backend runs on a GPU if it is the fastest of those that are right there.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import subprocess
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import torch

from ..files import write_json
from ..versions import VERSION
from . import extension

FALLBACK = "eager"
"""What runs where nothing is known: it takes everything, and needs PyTorch alone."""
_KERNELS = Path(__file__).parent


class Verdict(NamedTuple):
    """What is known of a backend.

    Attributes:
        seconds: what a training's passes take; None where it cannot be used.
        problem: why it cannot.
    """

    seconds: float | None
    problem: str = ""


Verdicts = dict[str, dict[str, Verdict]]
"""By operation, and by backend."""

_unkept: dict[str, Verdicts] = {}


def fastest(verdicts: Verdicts | None, operation: str) -> str:
    """The fastest backend of those that are right; :data:`FALLBACK` where none is."""
    backends = (verdicts or {}).get(operation, {})
    seconds = {name: verdict.seconds for name, verdict in backends.items() if verdict.seconds is not None}
    return min(seconds, key=seconds.__getitem__, default=FALLBACK)


def refusal(operation: str, backend: str) -> str | None:
    """Why a backend for GPUs does not run an operation here, or None."""
    verdicts = of_this_machine()
    if verdicts is None:
        return "there is no GPU that it was compared on"
    chosen = fastest(verdicts, operation)
    if chosen == backend:
        return None
    verdict = verdicts.get(operation, {}).get(backend, Verdict(None, "it was not compared"))
    return verdict.problem or f"{chosen} is faster on this GPU"


@functools.cache
def of_this_machine() -> Verdicts | None:
    """What is kept of this machine's GPU; None without one, or where it was not asked yet."""
    machine = identity()
    return None if machine is None else load(machine)


def load(machine: dict[str, str]) -> Verdicts | None:
    """What is kept of a machine; None where nothing is."""
    try:
        content = json.loads(path_of(machine).read_text(encoding="utf-8"))
        return {
            operation: {name: Verdict(**verdict) for name, verdict in backends.items()}
            for operation, backends in content["operations"].items()
        }
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        # Not there, or damaged: it is asked again.
        return _unkept.get(_key(machine))


def save(machine: dict[str, str], verdicts: Verdicts) -> None:
    """Keeps what a machine has said; on a disk that does not take it, in this process."""
    operations = {
        operation: {name: verdict._asdict() for name, verdict in backends.items()}
        for operation, backends in verdicts.items()
    }
    try:
        path = path_of(machine)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"machine": machine, "operations": operations})
    except (OSError, RuntimeError):
        _unkept[_key(machine)] = verdicts
    of_this_machine.cache_clear()


def path_of(machine: dict[str, str]) -> Path:
    """The file of a machine.

    Raises:
        RuntimeError: there is no cache folder.
    """
    return extension.cache_folder() / "gpu" / f"kernels_{_key(machine)}.json"


def _key(machine: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(machine, sort_keys=True).encode()).hexdigest()[:16]


def identity() -> dict[str, str] | None:
    """What a verdict holds for; None without a GPU. The GPU is not touched for it where its driver says its name."""
    if not torch.cuda.is_available():
        return None
    return {
        **_gpus_and_driver(),
        "torch": torch.__version__,
        "triton": _triton(),
        "project": f"{VERSION} {_checksum()}",
    }


def _gpus_and_driver() -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        lines = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()
        names, drivers = zip(*(line.rsplit(", ", 1) for line in lines), strict=True)
    except (OSError, subprocess.SubprocessError, ValueError):
        # Another maker's, or a container without the program.
        return {"gpu": torch.cuda.get_device_name(), "driver": str(torch.version.cuda or torch.version.hip)}
    gpus = sorted(set(names))
    # Of several kinds, those that are visible matter.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "all") if len(gpus) > 1 else ""
    return {"gpu": ", ".join(gpus) + (f" ({visible})" if visible else ""), "driver": drivers[0]}


def _triton() -> str:
    for name in ("triton", "pytorch-triton", "pytorch-triton-rocm"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return "none"


def _checksum() -> str:
    """Of the kernels' sources."""
    digest = hashlib.sha256()
    for path in sorted(_KERNELS.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
