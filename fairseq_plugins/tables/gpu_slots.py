"""Gives a command one GPU that no other command has: ``python -m fairseq_plugins.tables.gpu_slots COMMAND``.

It waits for one of the GPUs that ``CUDA_VISIBLE_DEVICES`` names (all that there are, where it says nothing), and leaves
that one alone visible to the command. A lock says who has which; it goes with the process, however that ends.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError, report_input_errors
from ..files import take_lock

WAIT = 1.0
"""Seconds between two looks for a free GPU."""


def visible_gpus() -> list[str]:
    """The GPUs to choose from, as ``CUDA_VISIBLE_DEVICES`` names them.

    Raises:
        InputError: there are none.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        from ..experiments.fairseq_commands import available_gpus

        gpus = [str(index) for index in range(available_gpus())]
    else:
        gpus = [gpu.strip() for gpu in named.split(",") if gpu.strip()]
    if not gpus:
        raise InputError("there is no GPU here (CUDA_VISIBLE_DEVICES may hide them); ask for --gpus 0, the CPU")
    return gpus


def take(gpus: Sequence[str], folder: Path) -> str:
    """Waits for a GPU, whose lock stays with this process and with what it becomes."""
    while True:
        for gpu in gpus:
            lock = take_lock(folder / f"{gpu.replace('/', '_')}.lock")
            if lock is not None:
                os.set_inheritable(lock, True)
                return gpu
        time.sleep(WAIT)


def main(arguments: Sequence[str]) -> None:
    """Becomes the command, with one GPU."""
    gpus = visible_gpus()
    # A job of SLURM's has its GPU to itself, and may call it 0 as all its neighbours on the node do.
    if len(gpus) > 1 or "SLURM_JOB_ID" not in os.environ:
        gpus = [take(gpus, Path(tempfile.gettempdir()) / f"fairseq_plugins_gpus_{os.getuid()}")]
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus[0]
    os.execvp(arguments[0], list(arguments))


if __name__ == "__main__":
    report_input_errors(lambda: main(sys.argv[1:]))
