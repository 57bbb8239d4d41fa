"""One GPU for each command; the GPUs here are names alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import CHECKOUT

WAIT = "import os, sys, time; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); sys.stdin.read()"


def start(folder: Path, gpus: str, *command: str, **variables: str) -> subprocess.Popen:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpus, "TMPDIR": str(folder), "PYTHONPATH": str(CHECKOUT)}
    environment |= variables
    arguments = [sys.executable, "-m", "fairseq_plugins.tables.gpu_slots", *command]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.system
def test_commands_at_the_same_time_have_a_gpu_each(tmp_path: Path) -> None:
    first, second = (start(tmp_path, "3,MIG-7/1", sys.executable, "-c", WAIT) for _ in range(2))
    taken = {process.stdout.readline().strip() for process in (first, second)}
    assert taken == {"3", "MIG-7/1"}
    third = start(tmp_path, "3,MIG-7/1", sys.executable, "-c", WAIT)
    time.sleep(2)
    assert third.poll() is None
    # However a command ends, its GPU is free.
    first.kill()
    free = third.stdout.readline().strip()
    assert free in taken
    for process in (second, third):
        process.stdin.close()
        assert process.wait(timeout=300) == 0
    first.wait()


def test_jobs_of_slurm_on_one_node_do_not_wait_for_each_other(tmp_path: Path) -> None:
    jobs = [start(tmp_path, "0", sys.executable, "-c", WAIT, SLURM_JOB_ID=job) for job in ("7", "8")]
    assert [job.stdout.readline().strip() for job in jobs] == ["0", "0"]
    for job in jobs:
        job.stdin.close()
        assert job.wait(timeout=300) == 0


def test_the_commands_exit_status_is_kept(tmp_path: Path) -> None:
    process = start(tmp_path, "0", "bash", "-c", "exit 3")
    assert process.wait(timeout=300) == 3


def test_no_gpu(tmp_path: Path) -> None:
    process = start(tmp_path, "", "true")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1 and errors.startswith("error: there is no GPU here") and errors.count("\n") == 1
