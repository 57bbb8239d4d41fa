"""Compiles C++ sources on first use and keeps the result.

Each with one command: ``torch.utils.cpp_extension`` needs ninja on the PATH, leaves the paths that it links with
unquoted, and its lock file makes every later run wait for ever after a killed build. What is compiled goes to a private
folder and is renamed into the cache, with a checksum in its name. Our lock is the operating system's, which goes with
its process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import torch

from ..files import locked, sha256

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "FAIRSEQ_PLUGINS_CACHE"
COMPILER_VARIABLE = "CXX"

# Sources include what they share as "cpu/vectors.h".
_KERNELS = Path(__file__).parent

_CAPABILITY_FLAGS = {
    "AVX512": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-DCPU_CAPABILITY_AVX512"],
    "AVX2": ["-mavx2", "-mfma", "-DCPU_CAPABILITY_AVX2"],
}
_FAILED = ".failed"
_ELSEWHERE = f"name another folder with {CACHE_VARIABLE}=..."

_reasons: dict[Path, str] = {}


def cache_folder() -> Path:
    """Where compiled code is kept: $FAIRSEQ_PLUGINS_CACHE, or ``fairseq_plugins`` in the user's cache.

    Raises:
        RuntimeError: nothing says where that is.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    if user := os.environ.get("XDG_CACHE_HOME"):
        return Path(user) / "fairseq_plugins"
    try:
        return Path.home() / ".cache" / "fairseq_plugins"
    except RuntimeError as error:
        raise RuntimeError(f"there is no home folder to keep compiled code in: {_ELSEWHERE}") from error


def compiler() -> list[str]:
    """The C++ compiler as $CXX names it, with its arguments if it has any (``ccache g++``); else ``c++``.

    Raises:
        RuntimeError: there is none.
    """
    named = os.environ.get(COMPILER_VARIABLE, "").strip() or "c++"
    # The path of one may have a space in it.
    for program, *arguments in [named], shlex.split(named):
        if (path := shutil.which(program)) is not None:
            return [path, *arguments]
    raise RuntimeError(f"there is no C++ compiler '{named}': install g++, or name one with {COMPILER_VARIABLE}=...")


def load(source: Path) -> ModuleType:
    """The compiled module of a C++ source with pybind11 bindings, from the cache or compiled now.

    It is compiled anew when it, a header beside it or one of those that kernels share (``cpu/``) has changed, and when
    what is in the cache is damaged. A compilation that failed is repeated with another compiler, or after
    :func:`forget_failures`.

    Raises:
        RuntimeError: it cannot be compiled or loaded here; the message is one line: why, and what can be done.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    supported = capability if capability in _CAPABILITY_FLAGS else "DEFAULT"
    flags = ["-O3", "-fopenmp", f"-DCPU_CAPABILITY={supported}", *_CAPABILITY_FLAGS.get(supported, []), *_torch_flags()]
    name = f"{source.parent.name}_{source.stem}_{_hash(source, flags)}"
    python = f"cpython-{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_folder() / f"{python}-torch-{torch.__version__}-{supported}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0):
            raise RuntimeError(f"{folder} is on a disk that is mounted with noexec: {_ELSEWHERE}")
        library = _whole_library(folder, name) or _build(source, name, flags, folder)
    except OSError as error:
        raise RuntimeError(f"{folder} cannot be written ({error.strerror or error}): {_ELSEWHERE}") from error
    spec = importlib.util.spec_from_file_location(name, library)
    try:
        if spec is None or spec.loader is None:
            raise ImportError(f"this Python imports no {library.suffix}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise RuntimeError(f"{library} cannot be loaded ({error}): delete it, or {_ELSEWHERE}") from error
    return module


def load_where_possible(source: Path) -> ModuleType | None:
    """:func:`load`; None, after a warning, where it cannot be compiled or loaded; :func:`reason` says why then."""
    try:
        module = load(source)
    except RuntimeError as error:
        _reasons[source] = str(error)
        warn_once(f"the C++ kernels are off, and slower ones run: {error}; scripts/check.sh tries again")
        return None
    _reasons.pop(source, None)
    return module


def reason(source: Path) -> str | None:
    """Why :func:`load_where_possible` has not loaded a source in this process; None where it has."""
    return _reasons.get(source)


def reasons() -> list[str]:
    """Why sources have not been loaded in this process, each reason once."""
    return list(dict.fromkeys(_reasons.values()))


def forget_failures() -> None:
    """Has every compilation that failed be tried again."""
    for path in cache_folder().glob(f"*/*{_FAILED}"):
        with contextlib.suppress(OSError):  # of a cache that is somebody else's
            path.unlink()


@functools.cache
def warn_once(message: str) -> None:
    """Logs a warning, unless this process has had the same before."""
    logger.warning(message)


def cause(output: str) -> str:
    """The line of a compiler's or linker's output that says why it failed, without colours or what follows from it."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror: ", line)]
    # What the compiler says when the linker has failed: the linker has said why.
    is_linker = re.compile(r"collect2: |linker command failed").search
    causes = [line for line in errors if not is_linker(line)]
    causes += [line for line in lines if re.search(r"\bld[.\w]*: ", line) and line not in errors]
    return next(iter([*causes, *errors, *lines[-1:]]), "it said nothing")


def _torch_flags() -> list[str]:
    """What PyTorch's headers have to be compiled with to fit its libraries; as its ``cpp_extension`` has it."""
    # It compares itself by numbers: 2.5 is before 2.12.
    flags = ["-std=c++20" if torch.__version__ >= "2.12" else "-std=c++17"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}")
    # Until PyTorch 2.8, in which pybind11 began to know them by itself.
    abi = {name: getattr(torch._C, f"_PYBIND11_{name}", None) for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")}
    return [*flags, *(f'-DPYBIND11_{name}="{value}"' for name, value in abi.items() if value is not None)]


def _hash(source: Path, flags: list[str]) -> str:
    """Of everything that goes into a build: files by their names and contents, and the flags."""
    headers = [*sorted(source.parent.glob("*.h")), *sorted((_KERNELS / "cpu").glob("*.h"))]
    digest = hashlib.sha256(" ".join(flags).encode())
    for path in source, *headers:
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _whole_library(folder: Path, name: str) -> Path | None:
    """What was compiled before, if it still is what it was."""
    return next((path for path in _libraries(folder, name) if path.name == _library_name(path, name)), None)


def _libraries(folder: Path, name: str) -> Iterator[Path]:
    return folder.glob(f"{name}.*.so")


def _library_name(library: Path, name: str) -> str:
    """With the checksum of the file that is to have it."""
    return f"{name}.{sha256(library)[:16]}.so"


def _build(source: Path, name: str, flags: list[str], folder: Path) -> Path:
    """Compiles, unless another process has done so meanwhile, or the same has failed before."""
    command = compiler()
    with locked(folder / f"{name}.lock"):
        # What a killed process left of its build.
        for leftover in folder.glob(f".{name}.*.build"):
            shutil.rmtree(leftover, ignore_errors=True)
        if (library := _whole_library(folder, name)) is not None:
            return library
        failure = folder / f"{name}.{_identity(command)}{_FAILED}"
        if failure.exists():
            raise _failure(failure)
        logger.warning(f"compiling {source.parent.name}/{source.name} for this machine, once; it takes up to a minute")
        build = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".build", dir=folder))
        try:
            result = build / "library.so"
            command += [*flags, *_arguments(source, name), "-o", str(result)]
            if (problem := _compile(command, result)) is not None:
                text = build / "problem"
                text.write_text(problem, encoding="utf-8")
                os.replace(text, failure)
                raise _failure(failure)
            for damaged in _libraries(folder, name):
                damaged.unlink()
            library = folder / _library_name(result, name)
            os.replace(result, library)
            return library
        finally:
            shutil.rmtree(build, ignore_errors=True)


def _failure(path: Path) -> RuntimeError:
    """What was written down of a compilation that failed."""
    problem = path.read_text(encoding="utf-8").partition("\n")[0]
    remedy = f"mend that, or name another compiler with {COMPILER_VARIABLE}=..."
    if "Python.h" in problem:
        remedy = "install Python's headers (python3-dev on Debian and Ubuntu)"
    return RuntimeError(f"{problem} (its output is in {path.parent}/*{_FAILED}): {remedy}")


def _compile(command: list[str], result: Path) -> str | None:
    """Runs the compiler; returns None, or why it failed: a line, and below it the command with its output."""
    # In English, in which errors are found.
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        finished = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
        )
    except OSError as error:
        return f"{command[0]} cannot be run: {error.strerror}\n"
    if finished.returncode == 0 and result.exists():
        return None
    end = f"ended with status {finished.returncode}" if finished.returncode else "wrote no library"
    return f"{command[0]} {end}: {cause(finished.stdout)}\n\n{shlex.join(command)}\n{finished.stdout}"


def _arguments(source: Path, name: str) -> list[str]:
    """Of the compiler, but for flags and output."""
    # Not at the head of the file: it takes its time, and compiled modules need none of it.
    from torch.utils import cpp_extension

    # "posix_prefix": by macOS's own scheme the folder may not be there.
    system = [*cpp_extension.include_paths(), sysconfig.get_path("include", scheme="posix_prefix")]
    libraries = [f"-L{path}" for path in cpp_extension.library_paths()]
    libraries += ["-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]
    if sys.platform == "darwin":
        libraries += ["-undefined", "dynamic_lookup"]
    return [
        *("-shared", "-fPIC", f"-DTORCH_EXTENSION_NAME={name}", f"-I{_KERNELS}"),
        *(part for path in system for part in ("-isystem", path)),
        *(str(source), *libraries),
    ]


def _identity(command: list[str]) -> str:
    """Of a compiler: another one, or another version, may succeed where this one has failed."""
    try:
        version = subprocess.run([*command, "--version"], stdin=subprocess.DEVNULL, capture_output=True).stdout
    except OSError:
        version = b""
    return hashlib.sha256(shlex.join(command).encode() + b"\0" + version).hexdigest()[:16]
