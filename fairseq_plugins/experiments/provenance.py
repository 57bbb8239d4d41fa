"""What a training ran on: the checkout's revision, the machine, and the packages that results depend on."""

from __future__ import annotations

import argparse
import functools
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from ..cpus import named_threads
from ..package_files import IS_CHECKOUT, ROOT

PACKAGES = (
    "fairseq-plugins",
    "fairseq-fixed",
    "fairseq",
    "torch",
    "numpy",
    "pytrec-eval-terrier",
    "sacrebleu",
    "sacremoses",
    "sentencepiece",
    "subword-nmt",
)
"""What results depend on."""


def git_revision() -> str | None:
    """The checkout's commit, with ``-dirty`` when files of the repository are changed; None outside of git.

    Records in ``results/`` do not count: nothing is computed by them, and the run before has written its own.
    """
    if not IS_CHECKOUT:  # the folder may be part of a repository of the user's own
        return None

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")
        return git("rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def machine() -> dict[str, Any]:
    """What computes here: ``processor``, its ``cores``, and the ``threads`` that PyTorch takes."""
    import torch

    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    threads = named_threads() or torch.get_num_threads()
    processor = next(named, "") or platform.processor() or platform.machine()
    return {"processor": processor, "cores": os.cpu_count(), "threads": threads}


def kernels(options: argparse.Namespace) -> dict[str, str]:
    """On which backend fairseq-train with these options runs each operation; on GPUs they are compared now if they
    never were, unless the user names one."""
    import torch

    from ..kernels import BACKEND_VARIABLE, comparison, summary

    if options.cpu:
        return summary.backends_on_cpu(
            torch.float16 if options.fp16 else torch.bfloat16 if options.bf16 else torch.float32
        )
    if not os.environ.get(BACKEND_VARIABLE):
        comparison.ensure(functools.partial(print, flush=True))
    return summary.backends_on_gpus()


def device(options: argparse.Namespace) -> str:
    """What fairseq-train with these options computes on: ``2 x NVIDIA A100``, or ``CPU, 1 thread``."""
    import torch

    if not options.cpu:
        return f"{options.distributed_world_size} x {torch.cuda.get_device_name(0)}"
    threads = named_threads() or torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"
