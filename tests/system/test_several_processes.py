"""Trainings in several processes, on the CPU: the same losses as in one, a worker that is killed, two machines."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.commands import CHECKOUT, PYTHON, run_command, run_script
from tests.system.test_sequence_tasks import prepared

TRANSLATION = """
  optimizer: adam
  lr: 0.01
  dropout: 0
  encoder-embed-dim: 8
  decoder-embed-dim: 8
  batch-size: 10
  update-freq: 2
  criterion: output_cross_entropy
  label-smoothing: 0.1
"""
MODELS = {
    "MC-RNN": "arch: mc_rnn_iwslt_de_en\n  encoder-hidden-size: 8\n  decoder-hidden-size: 8" + TRANSLATION,
    "DPN-S2S": "arch: dpn_gigaword\n  encoder-attention-heads: 2\n  decoder-attention-heads: 2\n"
    "  encoder-ffn-embed-dim: 8\n  decoder-ffn-embed-dim: 8\n  activation-dropout: 0" + TRANSLATION,
    "language model": "task: streaming_language_modeling\n  arch: recurrent_lm\n  decoder-embed-dim: 8\n"
    "  decoder-hidden-size: 8\n  tokens-per-sample: 10\n  batch-size: 4\n  criterion: output_cross_entropy\n"
    "  optimizer: sgd\n  lr: 1",
    "classifier": "task: sequence_classification\n  arch: rcrn_classifier\n  embed-dim: 8\n  hidden-size: 8\n"
    "  dropout: 0\n  batch-size: 5\n  update-freq: 2\n  criterion: sequence_classification\n  optimizer: adam\n"
    "  lr: 0.01",
}
COMMON = ["--max-update", "6", "--log-interval", "1", "--num-workers", "0", "--seed", "1", "--disable-validation"]


@pytest.fixture(scope="module")
def data(tiny_work: Path, running_text: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The prepared data of a model."""
    folder = tmp_path_factory.mktemp("labelled")

    def of(model: str) -> Path:
        if model == "language model":
            return running_text
        if model == "classifier":
            made = folder / "data"
            arguments = ("--text", "text", "--label", "label", "--lowercase")
            return made if made.exists() else prepared(folder, "classification", *arguments)
        return tiny_work / "data"

    return of


def configured(folder: Path, model: str) -> Path:
    path = folder / "model.yaml"
    path.write_text(f"train:\n  {MODELS[model]}\n", encoding="utf-8")
    return path


def losses(work: Path) -> list[float]:
    entries = map(json.loads, (work / "train.jsonl").read_text(encoding="utf-8").splitlines())
    return [entry["loss"] for entry in entries if entry["split"] == "train_inner"]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "ddp_backend"), zip(MODELS, ["c10d", "legacy_ddp"] * 2, strict=True))
def test_two_processes_train_as_one(model: str, ddp_backend: str, data: Callable[[str], Path], tmp_path: Path) -> None:
    """They share the batch of the configuration; a language model's streams are theirs."""
    path = configured(tmp_path, model)
    for name, more in ("one", []), ("two", ["--processes", "2", "--ddp-backend", ddp_backend]):
        place = ["--data", data(model), "--work", tmp_path / name, "--gpus", "0"]
        finished = run_script("train", path, *place, *COMMON, "--no-epoch-checkpoints", *more)
    share = "--batch-size 2" if model == "language model" else "--update-freq 1"
    assert f"2 processes share a batch: each has {share}" in finished.stdout
    one, two = (losses(tmp_path / name) for name in ("one", "two"))
    assert len(one) == 6 and one[-1] != one[0]
    # fairseq rounds losses to three digits.
    assert two == pytest.approx(one, abs=2e-3)
    results = json.loads((tmp_path / "two" / "results.json").read_text(encoding="utf-8"))
    assert results["kernels"]["multi_channel"] == "cpp"


def test_more_gpus_than_there_are_is_one_sentence(data: Callable[[str], Path], tmp_path: Path) -> None:
    place = ["--data", data("MC-RNN"), "--work", tmp_path / "work"]
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    finished = run_script("train", configured(tmp_path, "MC-RNN"), *place, "--gpus", "2", status=1, **hidden)
    assert finished.stderr.splitlines() == [
        "error: --gpus 2: PyTorch sees no GPU here; --gpus 0 is the CPU, with --processes 2 in 2 processes"
    ]
    assert not (tmp_path / "work").exists()


def parameters(work: Path) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = torch.load(work / "checkpoints" / "checkpoint_last.pt", weights_only=True)["model"]
    return state


@pytest.mark.slow
def test_a_killed_worker_ends_all_and_the_same_command_goes_on(data: Callable[[str], Path], tmp_path: Path) -> None:
    path = configured(tmp_path, "MC-RNN")

    def command(work: str, updates: int) -> list[str]:
        place = ["--data", data("MC-RNN"), "--work", tmp_path / work, "--gpus", "0", "--processes", "2"]
        limits = ["--max-update", updates, "--save-interval-updates", "5", "--no-epoch-checkpoints", "--seed", "1"]
        return list(map(str, [CHECKOUT / "scripts" / "train.sh", path, *place, *limits, "--num-workers", "0"]))

    last = tmp_path / "killed" / "checkpoints" / "checkpoint_last.pt"
    environment = {**os.environ, "PYTHON": PYTHON, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    # Far more than it will have done.
    with subprocess.Popen(
        command("killed", 100_000), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            wait_for(last.exists)
            workers = descendants_of(process.pid, "multiprocessing.spawn")
            assert len(workers) == 2
            os.kill(workers[1], signal.SIGKILL)
            output, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "error: fairseq-train ended with exit status 1: " in output
    assert "process 1 terminated with signal SIGKILL" in output.rpartition("error: ")[2]
    assert not [worker for worker in workers if is_running(worker)]

    done = torch.load(last, weights_only=True)["optimizer_history"][-1]["num_updates"]
    wanted = done + 7
    resumed = run_command(command("killed", wanted))
    assert f"@ {done} updates" in resumed.stdout
    run_command(command("whole", wanted))
    expected = parameters(tmp_path / "whole")
    for name, value in parameters(tmp_path / "killed").items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-5)


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def descendants_of(process: int, word: str) -> list[int]:
    """Those with a word in their command line, in the order in which they were started."""
    found = []
    for child in map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()):
        line = Path(f"/proc/{child}/cmdline").read_bytes().decode()
        found += [child] if word in line and "spawn_main" in line else []
        found += descendants_of(child, word)
    return sorted(found)


def is_running(process: int) -> bool:
    with contextlib.suppress(OSError):
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    return False


@pytest.mark.slow
def test_two_machines_by_the_command_that_the_page_prints(data: Callable[[str], Path], tmp_path: Path) -> None:
    """Both are this one, with a process each."""
    path = configured(tmp_path, "MC-RNN")
    options = [*COMMON, "--save-dir", str(tmp_path / "two"), "--no-save"]
    place = ["--data", data("MC-RNN"), "--gpus", "0"]
    one = run_script("train", path, *place, "--work", tmp_path / "one", *COMMON)
    assert one.returncode == 0
    [printed] = [line for line in one.stdout.splitlines() if "fairseq-train " in line]
    page = (CHECKOUT / "docs" / "training.md").read_text(encoding="utf-8")
    [(of_torchrun, further)] = re.findall(r"^torchrun (.*)\\\n +fairseq-train \.\.\. (.*)$", page, re.MULTILINE)
    of_torchrun = of_torchrun.replace("HOST:29500", f"localhost:{free_port()}").replace("node 8", "node 1")
    assert "--nnodes 2 --nproc-per-node 1" in of_torchrun and "localhost" in of_torchrun
    program, *arguments = shlex.split(printed)
    command = [str(Path(PYTHON).parent / "torchrun"), *of_torchrun.split(), program, *arguments]
    command += further.replace("16", "2").split()
    # The batch is twice that of one process: with half of it, the same.
    command += ["--update-freq", "1", *options]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    environment["PATH"] = f"{Path(PYTHON).parent}{os.pathsep}{environment['PATH']}"
    machines = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    try:
        outputs = [machine.communicate(timeout=300)[0] for machine in machines]
    finally:
        for machine in machines:
            machine.kill()
    assert [machine.returncode for machine in machines] == [0, 0], outputs
    logged = re.findall(r'\| train_inner \| \{.*"loss": "([^"]+)"', "".join(outputs))
    assert list(map(float, logged)) == pytest.approx(losses(tmp_path / "one"), abs=2e-3), "one of them writes the log"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port
