"""Which kernel a GPU gets: the fastest of those that compute what the reference does. The GPU is faked, on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_plugins.kernels import BACKEND_VARIABLE, comparison, dispatch, summary, verdicts
from fairseq_plugins.kernels.multi_channel import autograd
from fairseq_plugins.kernels.verdicts import Verdict, Verdicts

from . import fake_gpu

MACHINE = {"gpu": "a GPU", "driver": "1", "torch": "2", "triton": "3", "project": "4"}
GATE = torch.rand(3, 2, 4)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """A machine with a GPU on which nothing was compared, and the scan alone to compare."""
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)
    # Of all that is kept, this alone: kernels in C++ need not be compiled again.
    monkeypatch.setattr(verdicts, "path_of", lambda machine: tmp_path / "gpu" / f"{'_'.join(machine.values())}.json")
    monkeypatch.setattr(verdicts, "_unkept", {})
    monkeypatch.setattr(verdicts, "identity", lambda: MACHINE)
    for operation, backends in dispatch.OPERATIONS.items():
        unmeasured = tuple(backend for backend in backends if not backend.is_measured)
        monkeypatch.setitem(dispatch.OPERATIONS, operation, unmeasured)
    monkeypatch.setitem(dispatch.OPERATIONS, "forget_scan", fake_gpu.backends(*fake_gpu.KINDS))
    verdicts.of_this_machine.cache_clear()
    yield monkeypatch
    verdicts.of_this_machine.cache_clear()


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("right", ""),
        ("slow", ""),
        ("wrong", "it computes something else than the reference (scan, float32, (7, 3, 5): 1.0e-02)"),
        ("wrong gradient", "it computes something else than the reference (scan, float32, (7, 3, 5): "),
        ("no number", "it computes something else than the reference (scan, float32, (7, 3, 5): inf)"),
        ("raises", "OutOfMemoryError: no memory is left"),
        ("refuses", "RuntimeError: it takes nothing"),
    ],
)
def test_a_backend_is_held_to_the_reference_and_timed(kind: str, problem: str, fake: pytest.MonkeyPatch) -> None:
    fake.setattr(comparison, "REPETITIONS", 1)
    seconds, said = comparison.judge("forget_scan", kind, "cpu")
    assert said.startswith(problem) and bool(said) == bool(problem)
    assert (seconds is None) == bool(problem)
    if kind == "slow":
        assert seconds is not None and seconds > 0.1


@pytest.mark.system
def test_a_backend_that_crashes_takes_nothing_with_it(fake: pytest.MonkeyPatch) -> None:
    fake.setitem(dispatch.OPERATIONS, "forget_scan", fake_gpu.backends("slow", "crashes", "right"))
    found = comparison.compare("cpu", 300, True, fake_gpu.program())["forget_scan"]
    assert found["crashes"] == Verdict(None, "it crashed (SIGSEGV)")
    assert list(found) == ["eager", "slow", "crashes", "right"]
    assert verdicts.fastest({"forget_scan": found}, "forget_scan") == "right", found
    assert comparison.problems_of({"forget_scan": found}) == [
        "kernels: forget_scan does not run on crashes here, but on right: it crashed (SIGSEGV)"
    ]


@pytest.mark.system
def test_a_backend_that_hangs_is_ended(fake: pytest.MonkeyPatch) -> None:
    fake.setitem(dispatch.OPERATIONS, "forget_scan", fake_gpu.backends("hangs", "right"))
    found = comparison.compare("cpu", 8, True, fake_gpu.program())
    assert "it took longer than the 8 seconds" in found["forget_scan"]["hangs"].problem
    assert found["forget_scan"]["right"].seconds is None, "nothing is left for it"
    assert verdicts.fastest(found, "forget_scan") == "eager"


def known(**backends: Verdict) -> Verdicts:
    return {"forget_scan": backends}


@pytest.mark.parametrize(
    ("found", "name", "reason"),
    [
        (known(right=Verdict(0.1), eager=Verdict(0.2)), "right", None),
        (known(right=Verdict(0.3), eager=Verdict(0.2)), "eager", "eager is faster on this GPU"),
        (known(right=Verdict(None, "it crashed"), eager=Verdict(0.2)), "eager", "it crashed"),
        (known(right=Verdict(None, "it crashed"), eager=Verdict(None, "so did this")), "eager", "it crashed"),
        (known(eager=Verdict(0.2)), "eager", "it was not compared"),
        ({}, "eager", "it was not compared"),
        (None, "eager", "there is no GPU that it was compared on"),
    ],
)
def test_the_fastest_that_is_right_runs(
    found: Verdicts | None, name: str, reason: str | None, fake: pytest.MonkeyPatch
) -> None:
    fake.setitem(dispatch.OPERATIONS, "forget_scan", fake_gpu.backends("right"))
    if found is not None:
        verdicts.save(MACHINE, found)
    choice = dispatch.choose("forget_scan", GATE)
    assert (choice.name, choice.refused.get("right")) == (name, reason)
    assert summary.backends_on_gpus()["forget_scan"] == name
    # Whoever names one gets it.
    fake.setenv(BACKEND_VARIABLE, "forget_scan=right")
    fake.setitem(dispatch.BACKENDS, "right", "a sentence")
    assert dispatch.choose("forget_scan", GATE).name == "right"


def test_a_machine_is_asked_once(fake: pytest.MonkeyPatch) -> None:
    good, bad = known(right=Verdict(0.1), eager=Verdict(0.2)), known(right=Verdict(None, "it crashed"))
    answer, asked = good, []

    def compare(device: str, seconds: float, of_all: bool) -> Verdicts:
        asked.append((device, seconds, of_all))
        return answer

    fake.setattr(comparison, "compare", compare)
    fake.setitem(dispatch.OPERATIONS, "forget_scan", fake_gpu.backends("right"))
    said: list[str] = []
    assert comparison.ensure(said.append) == comparison.ensure(said.append) == good
    assert said == ["kernels: comparing those for a GPU, once; it takes up to 90 seconds"]
    assert comparison.ensure(said.append, of_all=True) == good, "nothing is wrong with them"
    assert asked == [("cuda", 90, False)] and verdicts.of_this_machine() == good

    for part in MACHINE:
        fake.setattr(verdicts, "identity", lambda part=part: {**MACHINE, part: "another"})
        before = len(asked)
        comparison.ensure(said.append)
        assert len(asked) == before + 1, part

    verdicts.path_of(MACHINE).write_text("{", encoding="utf-8")
    fake.setattr(verdicts, "identity", lambda: MACHINE)
    said.clear()
    answer = bad
    assert comparison.ensure(said.append) == bad
    assert said[1:] == ["kernels: forget_scan does not run on right here, but on eager: it crashed"]
    # The check tries again what could not be used; a training does not.
    before = len(asked)
    comparison.ensure(said.append)
    assert len(asked) == before
    answer = good
    assert comparison.ensure(said.append, of_all=True) == verdicts.of_this_machine() == good


def test_a_folder_that_cannot_be_written_keeps_nothing(fake: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fake.setattr(verdicts, "path_of", lambda machine: tmp_path / "file" / "x.json")
    fake.setattr(comparison, "compare", lambda *_: known(eager=Verdict(0.2)))
    assert comparison.ensure(lambda line: None) == known(eager=Verdict(0.2))
    # But this process knows it.
    fake.setattr(comparison, "compare", None)
    assert comparison.ensure(lambda line: None) == verdicts.of_this_machine() == known(eager=Verdict(0.2))


def test_without_a_gpu_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert verdicts.identity() is None and comparison.ensure() is None


def test_the_driver_says_which_gpu_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without touching it; where the driver's program is not there, PyTorch says it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "GPU of PyTorch")
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf 'NVIDIA A, 5\\nNVIDIA A, 5\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    first = verdicts.identity()
    assert first is not None and (first["gpu"], first["driver"]) == ("NVIDIA A", "5")
    program.write_text("#!/bin/sh\nprintf 'NVIDIA B, 5\\nNVIDIA A, 5\\n'\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    several = verdicts.identity()
    assert several is not None and several["gpu"] == "NVIDIA A, NVIDIA B (1)"
    program.unlink()
    without = verdicts.identity()
    assert without is not None and without["gpu"] == "GPU of PyTorch"


def test_a_training_does_not_wait_for_what_starts_slowly() -> None:
    assert ("multi_channel", "compiled") in comparison.candidates()
    assert ("multi_channel", "compiled") not in comparison.candidates(of_all=False)
    assert ("multi_channel", "cuda_graph") in comparison.candidates(of_all=False)


@pytest.mark.system
def test_the_real_table_is_compared_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every backend for GPUs has something to be compared by; right ones pass, and those for GPUs refuse a CPU."""
    assert {operation for operation, _ in comparison.candidates()} == comparison.OPERATIONS.keys()
    for operation, compared in comparison.OPERATIONS.items():
        first = next(compared.problems())
        monkeypatch.setitem(
            comparison.OPERATIONS, operation, compared._replace(timed=lambda first=first: iter([first]))
        )
        verdict = comparison.judge(operation, "eager", "cpu")
        assert verdict.seconds is not None and not verdict.problem
    assert comparison.judge("multi_channel", "autograd", "cpu").problem == ""
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    refused = comparison.judge("forget_scan", "triton", "cpu").problem
    assert "it computes on GPUs, and the gate is on cpu" in refused or "needs triton" in refused


def test_a_half_precision_is_held_to_that_of_pytorchs_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is far more wrong is found there, too."""
    specification = comparison.MultiChannelSpecification.multi_channel("lstm", "state", 3)
    problem = comparison._multi_channel(specification, (4, 2, 5, 6), None, torch.bfloat16, steps=1)
    operation = comparison.Operation(lambda: iter([problem]), lambda: iter(()))
    monkeypatch.setitem(comparison.OPERATIONS, "multi_channel", operation)
    comparison._expected.cache_clear()
    assert comparison.judge("multi_channel", "autograd", "cpu").problem == ""
    run = autograd.multi_channel_rnn

    def wrong(*arguments: Any, **options: Any) -> Any:
        result = run(*arguments, **options)
        return result._replace(output=result.output * 1.2)

    monkeypatch.setattr(autograd, "multi_channel_rnn", wrong)
    assert "bfloat16" in comparison.judge("multi_channel", "autograd", "cpu").problem
    comparison._expected.cache_clear()
