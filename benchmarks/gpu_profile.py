"""The part ``profile`` of ``gpu.py``: where the time of a training step goes, launches and what the GPU does with them.

    python benchmarks/gpu_profile.py MODEL [--device cuda]

profiles one model. Each has a process of its own: whatever a process has profiled, its launches take more time ever
after.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from gpu_cells import Cell, Figure, Plan, set_precision
from models import batch, model_of, task_of, training_step
from timing import device_here
from torch.profiler import ProfilerActivity, profile

# Model and the backend it is measured on; fairseq's have none of ours.
MODELS = (
    ("lstm_as_rnnsearch", ""),
    ("rnnsearch_iwslt_de_en", "cuda_graph"),
    ("mc_rnn_iwslt_de_en", "cuda_graph"),
    ("rnnsearch_iwslt_de_en", "eager"),
    ("mc_rnn_iwslt_de_en", "eager"),
    ("dpn_iwslt_de_en", ""),
    ("transformer_as_dpn", ""),
)
TYPES, SENTENCES = 8000, 176
WARM_UPS, TIMED, PROFILED = 4, 10, 2
LAUNCHES = (
    "cudaLaunchKernel",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaGraphLaunch",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
)
ROWS = 25


def profile_cells(plan: Plan) -> Iterator[Cell]:
    """A cell for each model and backend."""
    for model, backend in MODELS[:1] if plan.dry else MODELS:
        measure = functools.partial(in_a_process, model, plan)
        yield Cell("profile", model, f"{_sentences(plan.dry)} sentences", "bf16", backend, measure, seconds=60)


def in_a_process(model: str, plan: Plan) -> list[Figure]:
    """The figures that another process prints in its last line; all it prints is in the log.

    Raises:
        RuntimeError: it failed.
    """
    from gpu_commands import run

    command = [
        sys.executable,
        str(Path(__file__)),
        model,
        "--device",
        plan.device,
        *(["--dry-run"] if plan.dry else []),
    ]
    status, output = run(command, plan, 55)
    plan.write_log(f"profile of {model}", output)
    if status:
        raise RuntimeError((output.strip().splitlines() or ["it said nothing"])[-1])
    return [Figure(*figure) for figure in json.loads(output.strip().splitlines()[-1])]


def figures(step: Callable[[], None], device: str) -> Iterator[Figure]:
    """What one step takes, before anything is profiled, and what it is made of. Prints the operations that count."""
    is_cuda = torch.device(device).type == "cuda"
    wait = torch.cuda.synchronize if is_cuda else lambda: None
    for _ in range(WARM_UPS):
        step()
    wait()
    times = []
    for _ in range(TIMED):
        begun = time.perf_counter()
        step()
        wait()
        times.append(1000 * (time.perf_counter() - begun))
    yield Figure("training step", statistics.median(times), "ms")
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if is_cuda else [])]
    with profile(activities=activities) as profiler:
        for _ in range(PROFILED):
            step()
        wait()
    averages = profiler.key_averages()
    for column in ("self_cuda_time_total", "self_cpu_time_total") if is_cuda else ("self_cpu_time_total",):
        print(averages.table(sort_by=column, row_limit=ROWS, max_name_column_width=60))
    if is_cuda:
        yield Figure("launches of a step", sum(row.count for row in averages if row.key in LAUNCHES) / PROFILED)
        on_gpu = sum(
            row.self_device_time_total for row in averages if row.device_type == torch.autograd.DeviceType.CUDA
        )
        yield Figure("of it the GPU works", on_gpu / 1000 / PROFILED, "ms")


def _sentences(is_dry: bool) -> int:
    return 2 if is_dry else SENTENCES


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="of benchmarks/models.py")
    parser.add_argument("--device", type=device_here, default="cuda")
    parser.add_argument("--dry-run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    dtype = set_precision("bf16")
    task = task_of(options.model, 50 if options.dry_run else TYPES)
    model = model_of(options.model, task).to(options.device, dtype)
    step = training_step(model, task, batch(task, _sentences(options.dry_run), options.device))
    print(json.dumps(list(figures(step, options.device))))


if __name__ == "__main__":
    main(sys.argv[1:])
