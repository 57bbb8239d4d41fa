"""How many processes do something, where a container or the user allows fewer than there are CPUs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairseq_plugins import cpus
from fairseq_plugins.corpora import parallel_text
from fairseq_plugins.cpus import available_cpus


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a machine with eight CPUs."""
    monkeypatch.setattr(cpus, "CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("content", "count"), [("max 100000\n", 8), ("150000 100000\n", 2), ("10000 100000\n", 1), ("", 8)]
)
def test_control_groups(content: str, count: int, groups: Path) -> None:
    assert available_cpus() == 8
    (groups / "cpu.max").write_text(content)
    assert available_cpus() == count


@pytest.mark.parametrize(("quota", "count"), [("-1", 8), ("300000", 3)])
def test_control_groups_of_the_first_version(quota: str, count: int, groups: Path) -> None:
    (groups / "cpu").mkdir()
    (groups / "cpu" / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (groups / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert available_cpus() == count


def test_workers_are_as_many_as_the_process_may_use(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    required = ["--src-lang", "de", "--tgt-lang", "en", "--train", "x", "--valid", "x", "--output", "y"]
    assert parallel_text.parser().parse_args(required).workers == 2


@pytest.mark.parametrize(("text", "threads"), [("3", 3), ("2,1", 2), ("", None), ("0", None), ("many", None)])
def test_threads_that_openmp_is_given(text: str, threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert cpus.named_threads() == threads
