"""The benchmark for GPUs: all of it on a CPU, and what becomes of cells that fail, crash or have no time left."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from fairseq_plugins.errors import InputError
from tests.commands import CHECKOUT, run_command

sys.path.insert(0, str(CHECKOUT / "benchmarks"))

import gpu  # noqa: E402
import gpu_commands  # noqa: E402
from gpu_cells import Cell, Figure, Plan, Record, table  # noqa: E402

VERSIONS = {"torch": "2", "GPU": "of a test"}


@pytest.mark.slow
def test_dry_run(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    command = ["python", str(CHECKOUT / "benchmarks" / "gpu.py"), "--dry-run", "--continue", str(file)]
    finished = run_command(command, status=None)
    log = file.with_suffix(".log")
    assert finished.returncode == 0, finished.stderr + (log.read_text() if log.exists() else "")
    cells = json.loads(file.read_text())["cells"].values()
    for part in gpu.PARTS:
        assert any("figures" in cell for cell in cells if cell["part"] == part), finished.stdout + log.read_text()
    failed = {(cell["backend"], cell["failed"].rpartition(": ")[2]) for cell in cells if "failed" in cell}
    assert failed == {
        ("cuda_graph", "it computes on GPUs, and the layer is on cpu"),
        ("triton", "it computes on GPUs, and the gate is on cpu"),
    }
    measured = {figure["measured"] for cell in cells for figure in cell.get("figures", ())}
    assert measured >= {"passed", "forward and backward", "step of 5 rows", "beam search", "BLEU (tokenised)"}
    assert "error of output" in measured, "in float32 and on the same machine layers agree with the reference"
    assert not [name for name in measured if "DISAGREES" in name]
    rows = file.with_suffix(".md").read_text().splitlines()
    assert sum(row.startswith("| training |") for row in rows) > 3
    assert file.with_suffix(".md").read_text() in finished.stdout


def cell(subject: str, measure: Callable[[], Sequence[Figure]], seconds: float = 1) -> Cell:
    return Cell("layers", subject, "small", "fp32", "eager", measure, seconds)


def plan(folder: Path, **options: object) -> Plan:
    return Plan(**{"device": "cpu", "dry": True, "repetitions": 2, "log": folder / "x.log", "work": folder, **options})


def number() -> list[Figure]:
    return [Figure("forward", 1.5, "ms", 2.0, 0.5, "torch.nn.LSTM")]


def error() -> list[Figure]:
    raise RuntimeError("no memory | left\nand more")


def never() -> list[Figure]:
    raise AssertionError("measured a second time")


def test_what_is_measured_stays_and_what_fails_has_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    cells = [cell("first", number), cell("second", error), cell("third", number)]
    gpu.measure(Record(file, VERSIONS), iter(cells), plan(tmp_path), float("inf"))
    record = Record(file, VERSIONS)
    assert [list(found)[-1] for found in record.cells.values()] == ["figures", "failed", "figures"]
    assert "and more" in (tmp_path / "x.log").read_text()
    rows = table(record).splitlines()
    assert "| layers | first | small | fp32 | eager | forward | 1.5 ms | ± 2.0 % | 0.50 x | torch.nn.LSTM |" in rows
    assert "| layers | second | small | fp32 | eager | failed | no memory \\| left |  |  |  |" in rows

    gpu.measure(record, iter([each._replace(measure=never) for each in cells]), plan(tmp_path), float("inf"))
    record.forget_failures()
    gpu.measure(record, iter([cells[1]._replace(measure=number)]), plan(tmp_path), float("inf"))
    assert all("figures" in found for found in Record(file, VERSIONS).cells.values())


def test_nothing_is_begun_that_would_not_end_in_time(tmp_path: Path) -> None:
    record = Record(tmp_path / "gpu.json", VERSIONS)
    cells = [cell("long", never, seconds=60), cell("short", number, seconds=1)]
    gpu.measure(record, iter(cells), plan(tmp_path), time.monotonic() + 30)
    assert [found["subject"] for found in record.cells.values()] == ["short"]


@pytest.mark.parametrize(
    "ending, reason",
    [("SIGSEGV", "the process ended with signal SIGSEGV"), ("SIGALRM", "it took too long")],
)
def test_a_cell_that_ends_the_process_is_given_up(ending: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    begun, left = tmp_path / "begun.json", Record(file, VERSIONS)
    left.begin(cell("crash", never))
    begun.write_bytes(file.read_bytes())
    left.begin(cell("stopped by somebody", never))
    crash = (
        f"import os, shutil, signal; shutil.copy({str(begun)!r}, {str(file)!r}); os.kill(os.getpid(), signal.{ending})"
    )
    commands = iter([crash, ""])
    assert gpu.supervise(file, lambda seconds: [sys.executable, "-c", next(commands)], 60) == 0
    [found] = Record(file, VERSIONS).cells.values()
    assert (found["subject"], found["failed"]) == ("crash", reason)


def test_a_process_that_measures_nothing_ends_all(tmp_path: Path) -> None:
    assert gpu.supervise(tmp_path / "gpu.json", lambda seconds: [sys.executable, "-c", "exit(3)"], 60) == 3


def test_what_somebody_stopped_has_not_failed(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    Record(file, VERSIONS).begin(cell("stopped by somebody", never))
    assert gpu.supervise(file, lambda seconds: [sys.executable, "-c", "exit(3)"], 60) == 3
    assert not Record(file, VERSIONS).cells


def test_figures_of_two_machines_do_not_mix(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    gpu.measure(Record(file, VERSIONS), iter([cell("first", number)]), plan(tmp_path), float("inf"))
    with pytest.raises(InputError, match="was measured elsewhere .*GPU of a test.* give another --continue"):
        Record(file, {**VERSIONS, "GPU": "another"})
    file.write_text("{}")
    with pytest.raises(InputError, match="not a file of this benchmark"):
        Record(file)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PyTorch sees no GPU here; --dry-run"):
        gpu.work(gpu.parse(["--continue", str(tmp_path / "gpu.json")]))


@pytest.mark.parametrize(
    "losses, reason",
    [
        ([8.0, 7.0, float("nan"), 5.0], "the loss was not a number"),
        ([8.0, 7.0, 9.0, 8.0], r"the loss did not fall: 7\.500 at first, 8\.500 in the end"),
        ([], "the loss was not a number"),
    ],
)
def test_half_precision_must_learn(
    losses: list[float], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"split": "train_inner", "epoch": 1, "loss": loss}) + "\n" for loss in losses]
    (tmp_path / "train.jsonl").write_text("".join([*lines, '{"split": "train", "epoch": 1, "loss": 1.0}\n']))
    monkeypatch.setattr(gpu_commands, "_train", lambda *arguments: tmp_path)
    with pytest.raises(RuntimeError, match=reason):
        gpu_commands.half_precision("MC-RNN-3", "bf16", plan(tmp_path, data=tmp_path))


def test_what_a_command_said_of_its_failure() -> None:
    output = "begins\nTraceback (most recent call last):\n  x\ntorch.OutOfMemoryError: CUDA out of memory\nbye\n"
    assert gpu_commands._last_line(output) == "torch.OutOfMemoryError: CUDA out of memory"
    assert gpu_commands._last_line("begins\nerror: no such data\n") == "error: no such data"
    assert gpu_commands._last_line("") == "it said nothing"


def test_what_a_stopped_command_had_said_is_in_the_log(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; print('epoch 3', flush=True); time.sleep(60)"]
    with pytest.raises(RuntimeError, match="was stopped after 2 seconds"):
        gpu_commands.run(command, plan(tmp_path, dry=False), 2)
    assert "epoch 3" in (tmp_path / "x.log").read_text()


def test_chosen_parts_alone_go_on_where_they_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--continue FILE --parts layers."""
    file = tmp_path / "gpu.json"
    parts = {"layers": [cell("first", number)], "tests": [cell("second", never)]}
    monkeypatch.setattr(gpu, "cells_of", lambda part, plan: iter(parts[part]))
    for _ in range(2):
        gpu.work(gpu.parse(["--dry-run", "--continue", str(file), "--parts", "layers"]))
        parts["layers"] = [cell("first", never)]
    assert [found["subject"] for found in json.loads(file.read_text())["cells"].values()] == ["first"]


def test_a_part_alone_has_all_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "versions", lambda device: VERSIONS)
    ends = {}
    monkeypatch.setattr(gpu, "cells_of", lambda part, plan: part)
    monkeypatch.setattr(gpu, "measure", lambda record, part, plan, until: ends.update({part: until - time.monotonic()}))
    for parts in ["training"], ["tests", "models"]:
        gpu.work(gpu.parse(["--continue", str(tmp_path / "gpu.json"), "--seconds", "590", "--parts", *parts]))
    assert ends["training"] == pytest.approx(590, abs=5)
    for part in "tests", "models":
        assert ends[part] == pytest.approx(gpu.PART_SECONDS, abs=5)
