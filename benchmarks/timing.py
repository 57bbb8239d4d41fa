"""What the benchmarks share: candidates that take turns, medians with their spread, versions, a JSON file."""

from __future__ import annotations

import logging
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
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


def versions(device: str | torch.device = "cpu") -> dict[str, str]:
    """Versions and machine, for the head of what is printed."""
    found = {**package_versions(["torch"]), "machine": platform.machine()}
    if torch.device(device).type == "cuda":
        found["GPU"] = torch.cuda.get_device_name(device)
    else:
        found["CPU"] = _cpu_name()
        found["CPU capability"] = torch.backends.cpu.get_cpu_capability()
        found["cores"] = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    return found


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
