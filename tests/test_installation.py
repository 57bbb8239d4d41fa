"""What scripts/check.sh finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fairseq_plugins import installation
from fairseq_plugins.kernels import BACKEND_VARIABLE, extension
from fairseq_plugins.kernels.additive_attention import cpu as additive_attention
from fairseq_plugins.kernels.forget_scan import cpu as forget_scan
from fairseq_plugins.kernels.multi_channel import cpu as multi_channel
from fairseq_plugins.modules import RECURRENT_KINDS
from tests.commands import CHECKOUT, run_command

KERNELS = (multi_channel, additive_attention, forget_scan)


@pytest.mark.parametrize("kind", RECURRENT_KINDS)
def test_a_layer_is_held_to_its_reference(kind: str) -> None:
    row, _ = installation.check_layer(RECURRENT_KINDS[kind])
    assert max(row["forward"], row["backward"]) < installation.TOLERANCE


def test_a_layer_that_computes_something_else_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = installation._run

    def wrong(network, x, weights, by_steps):
        found = run(network, x, weights, by_steps)
        if not by_steps:
            found[-1] = found[-1] + 10
        return found

    monkeypatch.setattr(installation, "_run", wrong)
    problems = installation.check_layers()
    assert {name for name in RECURRENT_KINDS if any(f"the layer {name} computes" in text for text in problems)} >= {
        *("lstm", "gru", "rnn", "mc_rnn", "ho_rnn")
    }
    assert "mc_rnn" in capsys.readouterr().out


def test_why_a_layer_does_not_run_on_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRSEQ_PLUGINS_BACKEND", "eager")
    row, refused = installation.check_layer(RECURRENT_KINDS["mc_rnn"])
    assert row["backend"] == "eager" and refused == {}
    monkeypatch.delenv("FAIRSEQ_PLUGINS_BACKEND")
    row, refused = installation.check_layer(RECURRENT_KINDS["mc_rnn"])
    assert "cuda_graph" in refused


def test_problems_have_remedies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "versions", lambda _: {"torch": torch.__version__})
    assert "fairseq-fixed is not installed: run scripts/install.sh" in installation.check_versions()
    monkeypatch.setattr(installation, "FREE_GIGABYTES", 10**9)
    assert f"{tmp_path} has" in installation.check_disk(tmp_path)[0]


@pytest.fixture
def uncompiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache in which no kernel is compiled."""
    monkeypatch.setenv(extension.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)
    monkeypatch.setattr(extension, "_reasons", {})
    for kernel in KERNELS:
        kernel.compiled.cache_clear()
    yield tmp_path / "cache"
    for kernel in KERNELS:
        kernel.compiled.cache_clear()


@pytest.mark.parametrize(
    ("compiler", "problem"),
    [("no-such-compiler", "no C++ compiler 'no-such-compiler': install g++"), ("false", "/false ended with status 1")],
)
def test_kernels_that_are_off_are_a_problem(
    uncompiled: Path, compiler: str, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", compiler)
    (sentence,) = installation.check_kernels()
    assert problem in sentence
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("kernels: PyTorch operations (MC-RNN, attention, scan); the C++ ones are off: ")
    assert problem in lines[-1]


def test_what_failed_is_tried_again_by_the_check(uncompiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (uncompiled / "machine").mkdir(parents=True)
    (uncompiled / "machine" / "kernel.failed").touch()
    monkeypatch.setenv("CXX", "no-such-compiler")
    installation.check_kernels()
    assert list((uncompiled / "machine").iterdir()) == []


def test_kernels_that_are_off_by_name_are_none(
    uncompiled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv(BACKEND_VARIABLE, "eager")
    assert installation.check_kernels() == []
    assert "kernels: PyTorch operations (MC-RNN, attention, scan)\n" in capsys.readouterr().out


def test_the_script(tmp_path: Path) -> None:
    finished = run_command([CHECKOUT / "scripts" / "check.sh"], status=None, cwd=tmp_path)
    assert finished.stdout.splitlines()[0].startswith("fairseq-plugins ")
    for kind in RECURRENT_KINDS:
        assert f"\n{kind} " in finished.stdout
    assert "\nkernels: C++ (MC-RNN, attention, scan)\n" in finished.stdout
    assert "the layer" not in finished.stdout.partition("checked in")[2]
