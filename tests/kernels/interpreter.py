"""Triton's kernels on machines without a GPU: whole test files run again under Triton's interpreter."""

from __future__ import annotations

import os

import numpy
import pytest

from tests.commands import CHECKOUT, run_command

IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def run_under_interpreter(file: str, has_loops: bool = False) -> None:
    """Runs the tests of a file in a process of their own, where :data:`IS_INTERPRETED`.

    Args:
        file: of the tests.
        has_loops: over numbers that are known when the kernel runs.
    """
    if IS_INTERPRETED:
        pytest.skip("this is the interpreter")
    triton = pytest.importorskip("triton", reason="triton is not installed (extra dev, Linux only)")
    if triton.__version__.startswith("3.1.") and not numpy.__version__.startswith("1."):
        pytest.skip("the interpreter of Triton 3.1 computes nothing with NumPy 2")
    numbers = [tuple(map(int, module.__version__.split(".")[:2])) for module in (triton, numpy)]
    if has_loops and numbers[0] < (3, 7) and numbers[1] >= (2, 4):
        pytest.skip("before Triton 3.7 the interpreter has no loops with NumPy 2.4")
    command = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", file]
    finished = run_command(command, cwd=CHECKOUT, TRITON_INTERPRET="1")
    assert " passed" in finished.stdout
