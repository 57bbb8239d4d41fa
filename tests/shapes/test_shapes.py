"""Everything that reads tensors refuses wrong ones, and they never end the process, which is one of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fairseq_plugins.kernels import BACKEND_VARIABLE
from fairseq_plugins.kernels.extension import CACHE_VARIABLE
from tests.commands import run_command


@pytest.mark.parametrize(
    "backend", [pytest.param("", marks=pytest.mark.system), pytest.param("eager", marks=pytest.mark.slow)]
)
def test_wrong_tensors_are_refused(backend: str) -> None:
    finished = run_command(["python", "-m", "tests.shapes", "400"], **{BACKEND_VARIABLE: backend})
    assert finished.stdout.endswith("no call ended the process\n")


@pytest.mark.slow
def test_no_memory_is_read_that_is_not_ours(tmp_path: Path) -> None:
    """Under AddressSanitizer, with which the kernels are compiled: it ends the process at the first byte."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ to compile the kernels for AddressSanitizer with")
    libraries = [library_of(compiler, name) for name in ("libasan.so", "libstdc++.so.6")]
    if None in libraries:
        pytest.skip("there is no libasan to run the kernels with")
    wrapper = tmp_path / "c++"
    # The compiler itself runs without.
    wrapper.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {compiler} "$@" -fsanitize=address -g1 -O1\n')
    wrapper.chmod(0o755)
    environment = {
        "CXX": str(wrapper),
        CACHE_VARIABLE: str(tmp_path / "cache"),
        "ASAN_OPTIONS": "detect_leaks=0",
        "LD_PRELOAD": " ".join(filter(None, libraries)),
    }
    finished = run_command(["python", "-m", "tests.shapes", "500"], **environment)
    assert finished.stdout.endswith("no call ended the process\n")
    assert len(list((tmp_path / "cache").rglob("*.so"))) == 5


def library_of(compiler: str, name: str) -> str | None:
    """Where the compiler has a library; None if it has none."""
    path = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    return path.strip() if os.path.isabs(path.strip()) else None
