"""Compiles C++ sources on first use and keeps the result.

Built in a private folder and renamed into the cache, because the lock file of ``torch.utils.cpp_extension`` makes every
later run wait for ever after a killed build. Our own lock is the operating system's, which goes with its process.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import torch

from ..files import locked

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "FAIRSEQ_PLUGINS_CACHE"

# Sources include what they share as "cpu/vectors.h".
_KERNELS = Path(__file__).parent

_CAPABILITY_FLAGS = {
    "AVX512": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-DCPU_CAPABILITY_AVX512"],
    "AVX2": ["-mavx2", "-mfma", "-DCPU_CAPABILITY_AVX2"],
}


def cache_folder() -> Path:
    """Where compiled code is kept: $FAIRSEQ_PLUGINS_CACHE, or ``fairseq_plugins`` in the user's cache."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairseq_plugins"


def load(source: Path) -> ModuleType:
    """The compiled module of a C++ source with pybind11 bindings, from the cache or compiled now.

    It is compiled anew when it, a header beside it or one of those that kernels share (``cpu/``) has changed.

    Raises:
        RuntimeError, OSError, ImportError, subprocess.SubprocessError: it cannot be compiled here; it says why.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    known = capability if capability in _CAPABILITY_FLAGS else "DEFAULT"
    flags = ["-O3", "-fopenmp", f"-DCPU_CAPABILITY={known}", *_CAPABILITY_FLAGS.get(known, [])]
    python = f"cpython-{sys.version_info.major}.{sys.version_info.minor}"
    name = f"{source.parent.name}_{source.stem}_{_hash(source, flags)}"
    folder = cache_folder() / f"{python}-torch-{torch.__version__}-{known}"
    path = folder / f"{name}.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f"{name}.lock"):
            # What a killed process left of its build.
            for leftover in folder.glob(f".{name}.*.build"):
                shutil.rmtree(leftover, ignore_errors=True)
            if not path.exists():
                _compile(source, name, flags, path)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_where_possible(source: Path, operation: str) -> ModuleType | None:
    """:func:`load`; None, after a warning that names the operation, where it cannot be compiled."""
    try:
        return load(source)
    except (RuntimeError, OSError, ImportError, subprocess.SubprocessError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        logger.warning(f"the C++ kernels cannot be compiled here, so {operation} runs on slower ones: {reason}")
        return None


def _hash(source: Path, flags: list[str]) -> str:
    """Of everything that goes into a build: files by their names and contents, and the flags."""
    headers = [*sorted(source.parent.glob("*.h")), *sorted((_KERNELS / "cpu").glob("*.h"))]
    found = hashlib.sha256(" ".join(flags).encode())
    for path in source, *headers:
        found.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def _compile(source: Path, name: str, flags: list[str], path: Path) -> None:
    from torch.utils import cpp_extension

    logger.info(f"compiling {source.parent.name}/{source.name} for this machine, once; it takes up to a minute")
    # Else a build repeated in this process, after one that failed, would get another name.
    cpp_extension.JIT_EXTENSION_VERSIONER.entries.pop(name, None)
    build = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".build", dir=path.parent))
    try:
        cpp_extension.load(
            name,
            [str(source)],
            extra_cflags=flags,
            extra_include_paths=[str(_KERNELS)],
            extra_ldflags=["-fopenmp"],
            build_directory=str(build),
            # It would stay loaded from a place that is about to be removed.
            is_python_module=False,
            is_standalone=False,
        )
        os.replace(build / f"{name}.so", path)
    finally:
        shutil.rmtree(build, ignore_errors=True)
