"""Two commands on one folder at the same time, in every pair."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation, PairsRun
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import processes
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.files import locked
from tests.corpora.conftest import no_binarising as no_binarising  # noqa: PLC0414 - a fixture
from tests.corpora.parallel_text import contents, sentences, write

STEPS = PairsPreparation("de", "en", bpe="none")


def in_a_process(function: Callable[[], object]) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(target=function)
    process.start()
    return process


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


def test_two_preparations(tmp_path: Path, no_binarising: None, capfd: pytest.CaptureFixture[str]) -> None:
    inputs = {split: write(tmp_path / split, sentences(30, seed)) for seed, split in enumerate(("train", "valid"))}
    output, reached, go_on = tmp_path / "out", tmp_path / "reached", tmp_path / "go_on"

    class Slow(PairsRun):
        def write(self, folder: Path) -> dict[str, Any]:
            reached.touch()
            wait_for(go_on)
            return super().write(folder)

    first = in_a_process(lambda: Slow(STEPS, inputs, output).prepare())
    wait_for(reached)
    with pytest.raises(InputError, match="another preparation is at work in this folder"):
        PairsRun(STEPS, inputs, output).prepare()
    go_on.touch()
    first.join()
    assert first.exitcode == 0
    PairsRun(STEPS, inputs, output).prepare()
    assert "up to date" in capfd.readouterr().out
    PairsRun(STEPS, inputs, tmp_path / "alone").prepare()
    assert contents(output) == contents(tmp_path / "alone")


def test_a_preparation_that_was_killed_keeps_nobody_out(tmp_path: Path, no_binarising: None) -> None:
    """Its workers, which may live a moment longer, have no part in its lock."""
    inputs = {split: write(tmp_path / split, sentences(30, seed)) for seed, split in enumerate(("train", "valid"))}
    reached, workers = tmp_path / "reached", 2

    class Stopping(PairsRun):
        def write(self, folder: Path) -> dict[str, Any]:
            # A worker as those of a pool, which outlives its parent.
            in_a_process(lambda: (reached.touch(), time.sleep(30)))
            time.sleep(600)  # until it is killed
            return {}

    killed = os.fork()
    if killed == 0:
        Stopping(STEPS, inputs, tmp_path / "out", workers).prepare()
        os._exit(0)
    wait_for(reached)
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    for name in "out", "alone":
        PairsRun(STEPS, inputs, tmp_path / name).prepare()
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


@pytest.mark.parametrize("what", ["a training", "a workflow"])
def test_two_trainings_or_workflows(tmp_path: Path, what: str) -> None:
    reached = tmp_path / "reached"

    def first() -> None:
        with processes.only_one(tmp_path / "work", what):
            reached.touch()
            time.sleep(60)

    process = in_a_process(first)
    wait_for(reached)
    with pytest.raises(InputError, match=f"{what} is at work there; wait for it, or give another --work"):
        with processes.only_one(tmp_path / "work", what):
            pass
    # However it ends.
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with processes.only_one(tmp_path / "work", what):
        pass


def test_a_training_and_evaluations_of_several_sets(tmp_path: Path) -> None:
    """Each writes its part of results.json; none is lost."""
    names = ["test", "valid", "test1", "test2"]

    def evaluate(name: str) -> None:
        for number in range(20):
            with locked(tmp_path / "generate" / f".{name}.lock", "at work"):
                Run(tmp_path).update(subsets={name: {"bleu": number}})

    started = [in_a_process(lambda name=name: evaluate(name)) for name in names]
    for number in range(20):
        Run(tmp_path).update(updates=number)
    for process in started:
        process.join()
        assert process.exitcode == 0
    assert Run(tmp_path).results == {"updates": 19, "subsets": {name: {"bleu": 19} for name in names}}
