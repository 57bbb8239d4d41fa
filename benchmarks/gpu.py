"""All that a GPU should tell, in parts of at most eight minutes that go on where an earlier call ended.

    python benchmarks/gpu.py [--continue FILE] [--parts PART ...] [--seconds N] [--data DIR]
    python benchmarks/gpu.py --dry-run --continue FILE

One GPU has run the parts tests and layers, and an early form of profile (benchmarks/results/gpu_h200.json). The other
parts, and the decoder's loop as CUDA graphs, have only been seen in this benchmark's dry run on a CPU.

The parts, the most important first:

tests       the tests of what runs on GPUs alone, and of all models and layers beside the CPU
layers      every recurrent layer on each of its backends beside cuDNN's LSTM in the same precision and run: forward
            and backward, forward alone, decoding steps; bfloat16, TF32 (cuDNN's products and ours alike) and float32
models      MC-RNN-3, RNNSearch and DPN-S2S beside fairseq's lstm, transformer and fconv of about the same size: tokens
            a second in training, sentences a second in beam search, peak memory
profile     of a training step of each of these: its time, its launches, and how long the GPU works on them
agreement   errors of every layer and backend against the reference in float64, in each precision
precisions  scripts/train.sh with --bf16 and --fp16: no loss that is not a number, and a loss that falls; and the losses
            of two processes on one GPU beside those of one with twice the batch
training    trainings on --data in bfloat16 for --training-seconds, and their BLEU on the test set

Every cell is in FILE as soon as it is measured, and is not measured again; one that fails has its reason there.
FILE with the ending .md is the table of all cells, with .log what commands said and whole error messages; trainings are
recorded in the folder results beside it. A cell that crashes the process or takes too long is given up, and a new
process goes on with the next.
"""

from __future__ import annotations

import argparse
import gc
import math
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from gpu_cells import Cell, Plan, Record, on_backend, table, write_table
from timing import REPETITIONS, versions

from fairseq_plugins.errors import InputError, report_input_errors

PARTS = ("tests", "layers", "models", "profile", "agreement", "precisions", "training")
SYSTEMS = ("RNNSearch", "MC-RNN-3", "DPN-S2S", "transformer")
PART_SECONDS = 480
# Of what may go on after a cell should have ended, before the process is ended.
GRACE_SECONDS = 30
# The exit status of a process whose GPU does not answer any more.
GPU_LOST = 75

HELP = """
on a machine without a network
  Carry this checkout, and wheels for that machine's Python of what the machine lacks: fairseq-fixed
  (its own wheel, which has its compiled parts) with hydra-core, omegaconf, antlr4-python3-runtime and bitarray; and
  those that are missing of the extras train and runtime (pyproject.toml), of portalocker and colorama, and of pytest,
  pytest-timeout, pytest-xdist and hypothesis. PyTorch and Triton stay those of the machine. There:
    python3 -m pip install --no-index --no-deps --target SITE WHEELS/*.whl
    export PYTHONPATH=SITE
  For the part training prepare the data before (configs/iwslt14_sample/_base.yaml says how) and carry, of its folder,
  preparation.json, bin/, tokens/test.*, raw/test.* and the files of the BPE.
  The first call compares the kernels, for half a minute or more; carry what FAIRSEQ_PLUGINS_CACHE names from call to
  call.

a whole session: calls of at most ten minutes each, with FILE.json, FILE.md and FILE.log kept between them
  python3 benchmarks/gpu.py --continue FILE.json --seconds 540 --parts tests models profile agreement
  python3 benchmarks/gpu.py --continue FILE.json --seconds 580 --parts training --data DATA --training-seconds 360 \
    --systems MC-RNN-3                          (a call for each system, or two beside each other, a FILE each)
  python3 benchmarks/gpu.py --continue FILE.json --seconds 540 --parts precisions layers
PYTEST_ADDOPTS="-n 5" runs the tests beside each other. Whatever was mended in between: the same calls with --again,
which measures anew what failed.
"""


def cells_of(part: str, plan: Plan) -> Iterator[Cell]:
    # Each imports what it measures: fairseq's models and commands are not needed for layers.
    if part in ("layers", "agreement"):
        from gpu_layers import agreement_cells, layer_cells

        return {"layers": layer_cells, "agreement": agreement_cells}[part](plan)
    if part == "models":
        from gpu_models import model_cells

        return model_cells(plan)
    if part == "profile":
        from gpu_profile import profile_cells

        return profile_cells(plan)
    from gpu_commands import precision_cells, test_cells, training_cells

    return {"tests": test_cells, "precisions": precision_cells, "training": training_cells}[part](plan)


def measure(record: Record, cells: Iterator[Cell], plan: Plan, until: float) -> None:
    """Measures the cells that the record does not have, one after another.

    Args:
        until: the time, of ``time.monotonic()``, at which the last one ends.

    Raises:
        SystemExit: the GPU does not answer any more.
    """
    for cell in cells:
        if cell.name in record.cells:
            continue
        if time.monotonic() + cell.seconds > until:
            print(f"{cell.name}: not begun, it may take {cell.seconds:.0f} seconds")
            continue
        record.begin(cell)
        if not plan.dry:
            # In its default it ends the process even where that waits for the GPU.
            signal.alarm(int(cell.seconds) + GRACE_SECONDS)
        try:
            with on_backend(cell.backend):
                figures = cell.measure()
        except (Exception, SystemExit) as error:
            reason = reason_of(error)
            plan.write_log(cell.name, traceback.format_exc())
            record.fail(cell, reason)
            print(f"{cell.name}: FAILED: {reason}", flush=True)
            if plan.device == "cuda" and not gpu_answers():
                sys.exit(GPU_LOST)
        else:
            record.finish(cell, figures)
            print(f"{cell.name}: " + ", ".join(f"{f.measured} {f.value:,.4g} {f.unit}" for f in figures), flush=True)
        finally:
            if not plan.dry:
                signal.alarm(0)
        if plan.device == "cuda":
            gc.collect()
            torch.cuda.empty_cache()


def reason_of(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines() or [""]
    name = "" if isinstance(error, (InputError, RuntimeError, SystemExit)) else f"{type(error).__name__}: "
    return f"{name}{lines[0]}"[:300] or type(error).__name__


def gpu_answers() -> bool:
    """Whether the GPU can still be used: after an error of its own it cannot, until the process ends."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def supervise(record_path: Path, command: Callable[[float], list[str]], seconds: float) -> int:
    """Runs the measuring process, and another one wherever a cell ends it.

    Args:
        command: the process, from the seconds that it has.
        seconds: for all of them.

    Returns:
        The exit status of the last one.
    """
    end = time.monotonic() + seconds
    if record_path.exists():
        Record(record_path).forget_begun()
    while True:
        status = subprocess.run(command(end - time.monotonic()), check=False).returncode
        if status == 0:
            return 0
        if status != GPU_LOST:
            ended = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            reason = "it took too long" if status == -signal.SIGALRM else f"the process ended with {ended}"
            name = Record(record_path).fail_begun(reason)
            if name is None:
                return status
            print(f"{name}: FAILED: {reason}", flush=True)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help="default: all")
    parser.add_argument(
        "--continue", dest="record", type=Path, default=Path("gpu.json"), metavar="FILE", help="default: %(default)s"
    )
    parser.add_argument("--again", action="store_true", help="measure what failed before anew")
    parser.add_argument("--seconds", type=float, default=3600, help="of the whole call; default: %(default)s")
    parser.add_argument("--data", type=Path, metavar="DIR", help="prepared data; precisions has built-in sentences too")
    parser.add_argument("--training-seconds", type=float, default=60, help="of each system; default: %(default)s")
    parser.add_argument(
        "--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, metavar="SYSTEM", help="that train; default: all"
    )
    parser.add_argument("--backend", help="FAIRSEQ_PLUGINS_BACKEND of trainings; default: what is chosen by itself")
    parser.add_argument("--repetitions", type=REPETITIONS, default=7, help="default: %(default)s")
    parser.add_argument(
        "--dry-run", action="store_true", help="all parts on the CPU, so small that figures say nothing"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def work(args: argparse.Namespace) -> None:
    """Measures in this process."""
    device = "cpu" if args.dry_run else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("PyTorch sees no GPU here; --dry-run tries everything on the CPU")
    environment = versions(device)
    if args.dry_run:
        environment["dry run"] = "figures say nothing"
    record = Record(args.record, environment)
    # A dry run takes as long as it takes; a part alone has all of the time.
    seconds = math.inf if args.dry_run else args.seconds
    part_seconds = PART_SECONDS if len(args.parts) > 1 and not args.dry_run else seconds
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="gpu_benchmark_") as folder:
        plan = Plan(
            device=device,
            dry=args.dry_run,
            repetitions=2 if args.dry_run else args.repetitions,
            log=args.record.with_suffix(".log"),
            work=Path(folder),
            data=args.data and args.data.resolve(),
            backend=args.backend,
            training_seconds=args.training_seconds,
            systems=tuple(args.systems),
        )
        for part in args.parts:
            measure(record, cells_of(part, plan), plan, min(until, time.monotonic() + part_seconds))
            write_table(record)


def main() -> None:
    args = parse(sys.argv[1:])
    if args.again and args.record.exists():
        Record(args.record).forget_failures()
    if args.worker or args.dry_run:
        work(args)
    else:
        arguments = [argument for argument in sys.argv[1:] if argument != "--again"]
        worker = [sys.executable, __file__, *arguments, "--worker", "--seconds"]
        status = supervise(args.record, lambda seconds: [*worker, f"{seconds:.0f}"], args.seconds)
        if status:
            sys.exit(status)
    if not args.worker:
        record = Record(args.record)
        print(f"\n{table(record)}\n{args.record}, {write_table(record)}")


if __name__ == "__main__":
    report_input_errors(main)
