"""Commands that are killed at any moment, and started again, end with what an uninterrupted one makes.

Three preparations are killed by default. With FAIRSEQ_PLUGINS_KILLS=N it is N commands: preparations, trainings by two
workers, evaluations and reproductions of a table in turn, which takes minutes each. FAIRSEQ_PLUGINS_SEED begins another
sequence of moments. A kill is of the command alone, whose children live on, or of all of them at once.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from fairseq_plugins.errors import INTERRUPTED
from fairseq_plugins.files import take_lock
from tests.commands import CHECKOUT, run_command
from tests.conftest import TranslationData
from tests.corpora.parallel_text import contents

NAMED = os.environ.get("FAIRSEQ_PLUGINS_KILLS")
KILLS = int(NAMED or 3)
SEED = int(os.environ.get("FAIRSEQ_PLUGINS_SEED", "1"))
KINDS = ("preparation", "training", "evaluation", "reproduction") if NAMED else ("preparation",)
MODEL = """
train:
  arch: rnnsearch_iwslt_de_en
  optimizer: adam
  lr: 0.3
  dropout: 0.2
  encoder-embed-dim: 8
  encoder-hidden-size: 8
  encoder-layers: 1
  decoder-embed-dim: 8
  decoder-hidden-size: 8
  decoder-layers: 1
  batch-size: 8
  max-epoch: 9
  patience: 1
  seed: 7
generate: {beam: 2, batch-size: 32}
"""
# They are of a moment, or of a place.
NOT_COMPARED = {
    *("train_seconds", "train_tokens_per_second", "decode_sentences_per_second", "git_revision"),
    *("command", "evaluate_command", "checkpoint", "config"),
}


@dataclass(frozen=True)
class Case:
    """A command that can be killed.

    Attributes:
        command: writes into a folder
        outcome: what has to be the same, whenever it was killed
        prepare: what has to be in the folder before
        needs: the commands of which others read what they write
        place: where they look for it
    """

    command: Callable[[Path], Sequence[str | Path]]
    outcome: Callable[[Path], object]
    prepare: Callable[[Path], object] = lambda _: None
    needs: tuple[str, ...] = ()
    place: Path | None = None


def script(name: str) -> Path:
    return CHECKOUT / "scripts" / f"{name}.sh"


def results_of(work: Path) -> dict[str, object]:
    found = json.loads((work / "results.json").read_text(encoding="utf-8"))
    return {key: value for key, value in found.items() if key not in NOT_COMPARED}


def parameters_of(work: Path) -> dict[str, list[float]]:
    state = torch.load(work / "checkpoints" / "checkpoint_last.pt", weights_only=True)["model"]
    return {name: tensor.flatten().tolist() for name, tensor in state.items()}


@pytest.fixture(scope="module")
def cases(tiny_translation_data: TranslationData, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("kills")
    (folder / "model.yaml").write_text(MODEL, encoding="utf-8")
    texts = [part for split in ("train", "valid", "test") for part in (f"--{split}", tiny_translation_data.raw / split)]
    preparation = [script("prepare_parallel"), "--src-lang", "xx", "--tgt-lang", "yy", *texts, "--bpe-size", "40"]
    data, trained = folder / "data", folder / "trained"
    places = ["--data", data, "--gpus", "0", "--work"]
    two_workers = ["--cpu", "--distributed-world-size", "2"]
    return {
        "preparation": Case(lambda output: [*preparation, "--workers", "2", "--output", output], contents, place=data),
        "training": Case(
            lambda work: [script("train"), folder / "model.yaml", *places, work, *two_workers],
            lambda work: (parameters_of(work), results_of(work)),
            needs=("preparation",),
            place=trained,
        ),
        "evaluation": Case(
            lambda work: [script("evaluate"), folder / "model.yaml", *places, work],
            lambda work: (results_of(work), (work / "generate" / "test.yy").read_bytes()),
            lambda work: shutil.copytree(trained, work),
            needs=("training",),
        ),
        "reproduction": Case(
            lambda work: [
                *(script("reproduce"), "mc_rnn_table_5", "--scale", "small", "--max-update", "3", "--gpus", "0"),
                *("--cores", "2", "--work", work),
            ],
            lambda work: [
                {key: value for key, value in results_of(path.parent).items() if key != "attention"}
                for path in sorted(work.glob("*/*/seed_1/results.json"))
            ],
        ),
    }


Uninterrupted = Callable[[str], tuple[object, float]]


@pytest.fixture(scope="module")
def uninterrupted(cases: dict[str, Case], tmp_path_factory: pytest.TempPathFactory) -> Uninterrupted:
    """What a command makes, and how many seconds it takes; each is run once."""
    known: dict[str, tuple[object, float]] = {}

    def run(kind: str) -> tuple[object, float]:
        if kind not in known:
            place = cases[kind].place or tmp_path_factory.mktemp(kind) / "place"
            for needed in cases[kind].needs:
                run(needed)
            cases[kind].prepare(place)
            before = time.monotonic()
            run_command(cases[kind].command(place), timeout=3000, is_fresh=True)
            known[kind] = cases[kind].outcome(place), time.monotonic() - before
        return known[kind]

    return run


def kill(command: Sequence[str | Path], seconds: float, all_at_once: bool) -> bool:
    """Starts a command and kills it after some seconds; returns whether it had not ended before."""
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        list(map(str, command)),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            process.wait(timeout=seconds)
            return False
        except subprocess.TimeoutExpired:
            if all_at_once:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            return True


def until_it_ends(command: Sequence[str | Path]) -> None:
    """Starts a command until it is not refused: what a killed one had started may be at work for a moment."""
    deadline = time.monotonic() + 600
    while True:
        finished = run_command(command, status=None, timeout=3000)
        assert "Traceback" not in finished.stderr, finished.stderr
        if finished.returncode == 0:
            return
        assert "is at work" in finished.stderr and time.monotonic() < deadline, finished.stderr[-3000:]
        time.sleep(1)


@pytest.mark.parametrize(
    "number",
    [pytest.param(number, marks=pytest.mark.slow if number and NAMED is None else ()) for number in range(KILLS)],
)
def test_a_kill_changes_nothing(
    number: int,
    cases: dict[str, Case],
    uninterrupted: Uninterrupted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHON", sys.executable)
    kind = KINDS[number % len(KINDS)]
    expected, seconds = uninterrupted(kind)
    generator = random.Random(1000 * SEED + number)
    case, place = cases[kind], tmp_path / "place"
    case.prepare(place)
    # Twice: what goes on can be killed too.
    for _ in range(2):
        moment, all_at_once = generator.uniform(0, seconds), generator.random() < 0.5
        if not kill(case.command(place), moment, all_at_once):
            break
    until_it_ends(case.command(place))
    assert case.outcome(place) == expected, f"{kind}, killed after {moment:.2f} of {seconds:.2f} seconds"


@pytest.mark.skipif(NAMED is None, reason="trains by two workers: say FAIRSEQ_PLUGINS_KILLS=2 or more")
def test_a_second_training_is_refused(
    cases: dict[str, Case], uninterrupted: Uninterrupted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON", sys.executable)
    uninterrupted("preparation")
    command = list(map(str, cases["training"].command(tmp_path / "work")))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as first:
        try:
            while not (tmp_path / "work" / "train.log").exists():
                assert first.poll() is None
                time.sleep(0.05)
            refused = run_command(command, status=1)
        finally:
            os.killpg(first.pid, signal.SIGKILL)
    assert refused.stderr == (
        f"error: {tmp_path / 'work'}: a training is at work there; wait for it, or give another --work\n"
    )


@pytest.mark.system
@pytest.mark.usefixtures("hang_ups")
def test_a_training_ends_with_its_terminal(tiny_work: Path, tmp_path: Path) -> None:
    """Its standard output is closed from the beginning; then the terminal hangs up."""
    (tmp_path / "model.yaml").write_text(MODEL.replace("max-epoch: 9", "max-epoch: 100000"), encoding="utf-8")
    work, errors = tmp_path / "work", tmp_path / "errors"
    arguments = [tmp_path / "model.yaml", "--data", tiny_work / "data", "--gpus", "0", "--work", work]
    command = shlex.join([sys.executable, "-m", "fairseq_plugins", "train", *map(str, arguments), "--patience", "0"])
    with errors.open("w") as stream:
        process = subprocess.Popen(["sh", "-c", f"exec {command} >&-"], cwd=CHECKOUT, stderr=stream)
    last = work / "checkpoints" / "checkpoint_last.pt"
    deadline = time.monotonic() + 120
    while not last.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == INTERRUPTED, errors.read_text()
    kept, interrupted = errors.read_text().splitlines()[-2:]
    assert kept.endswith(" updates, from which the same command goes on") and interrupted == "interrupted"
    assert "Traceback" not in errors.read_text()
    # Workers that read data for fairseq-train look every five seconds whether it is there.
    while (lock := take_lock(work / ".lock")) is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert lock is not None, "fairseq-train, which has inherited it, is gone"
    os.close(lock)
