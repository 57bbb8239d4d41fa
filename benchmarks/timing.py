"""What the benchmarks share: candidates that take turns, medians with their spread, versions, a JSON file."""

from __future__ import annotations

import argparse
import logging
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fairseq_plugins import files
from fairseq_plugins.versions import versions as package_versions

# Importing fairseq makes every library's debug messages appear.
logging.disable(logging.INFO)


class Timing(NamedTuple):
    """Median in seconds, and spread: half the distance between the quartiles in percent of the median."""

    median: float
    spread_percent: float


def take_turns(
    runs: Mapping[str, Callable[[], object]], repetitions: int, device: str | torch.device = "cpu"
) -> dict[str, Timing]:
    """Times each candidate once in every repetition, after one run that does not count, so that a machine that changes
    its speed changes it for all."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repetition in range(repetitions + 1):
        for name, run in runs.items():
            _wait_for(device)
            start = time.perf_counter()
            run()
            _wait_for(device)
            if repetition:
                times[name].append(time.perf_counter() - start)
    timings = {}
    for name, values in times.items():
        median = statistics.median(values)
        quartiles = statistics.quantiles(values, n=4)
        timings[name] = Timing(median, 50 * (quartiles[2] - quartiles[0]) / median)
    return timings


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """p of value ~ size^p for points (size, value), fitted to the logarithms by least squares; linear is 1."""
    sizes, values = zip(*points, strict=True)
    return statistics.linear_regression([*map(math.log, sizes)], [*map(math.log, values)]).slope


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option that is a whole number, and not below ``least``."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is too few: at least {least}")
        return value

    number.__name__ = "int"  # as argparse calls it where a value is none
    return number


REPETITIONS = at_least(2)
"""The type of ``--repetitions``: one time has no spread."""


def device_here(text: str) -> str:
    """The type of ``--device``."""
    try:
        torch.empty(0, device=text)
    except (RuntimeError, AssertionError):  # the latter where PyTorch is built without CUDA
        raise argparse.ArgumentTypeError(
            f"there is no device {text!r} here: cpu, or cuda where there is a GPU"
        ) from None
    return text


def versions(device: str | torch.device = "cpu") -> dict[str, str]:
    """Versions and machine, for the head of what is printed."""
    environment = {**package_versions(["torch"]), "machine": platform.machine()}
    if torch.device(device).type == "cuda":
        environment["GPU"] = torch.cuda.get_device_name(device)
    else:
        environment["CPU"] = _cpu_name()
        environment["CPU capability"] = torch.backends.cpu.get_cpu_capability()
        environment["cores"] = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    return environment


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def write_json(path: Path | None, versions: Mapping[str, str], rows: list[dict[str, Any]]) -> None:
    """Writes all figures to a file, if one is named."""
    if path is not None:
        files.write_json(path, {"versions": versions, "rows": rows})


def _wait_for(device: str | torch.device) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
