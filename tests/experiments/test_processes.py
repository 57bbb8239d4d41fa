"""How commands are run and stopped, one at a time in a folder."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import processes


def test_run_hands_over_lines_and_the_exit_status() -> None:
    lines: list[str] = []
    assert (
        processes.run([sys.executable, "-c", "print('a\\u00e4'); print('b'); raise SystemExit(3)"], lines.append) == 3
    )
    assert lines == ["aä\n", "b\n"]


def test_a_command_keeps_its_memory_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    monkeypatch.setenv("MALLOC_TOP_PAD_", "4096")
    lines: list[str] = []
    program = "import os; print(os.environ['MALLOC_TRIM_THRESHOLD_'], os.environ['MALLOC_TOP_PAD_'])"
    assert processes.run([sys.executable, "-c", program], lines.append) == 0
    assert lines == ["8000000000 4096\n"]


def test_a_command_runs_its_assert_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq copies checkpoints in one."""
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    lines: list[str] = []
    assert processes.run([sys.executable, "-c", "assert print('done')"], lines.append) == 1
    assert lines == ["done\n"]
    assert os.environ["PYTHONOPTIMIZE"] == "1"


def test_an_interrupted_run_leaves_no_process_behind() -> None:
    started: list[int] = []

    def interrupt(line: str) -> None:
        started.append(int(line))
        raise KeyboardInterrupt

    program = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        processes.run([sys.executable, "-c", program], interrupt)
    assert time.monotonic() - before < 500
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_what_a_failed_command_said_last(tmp_path: Path) -> None:
    output = ["Traceback (most recent call last):\n", "KeyError: 'x'\n"]
    error = processes.failure(["/bin/fairseq-train", "x"], 1, output, tmp_path / "log")
    assert str(error) == f"fairseq-train ended with exit status 1: KeyError: 'x'; its output is in {tmp_path / 'log'}"
    assert str(processes.failure(["a"], -9, output)) == "a ended with exit status -9: it was ended by SIGKILL"


def test_two_trainings_in_one_folder(tmp_path: Path) -> None:
    with processes.only_one(tmp_path / "work"):
        with pytest.raises(InputError, match="a training is at work there"), processes.only_one(tmp_path / "work"):
            pass
    with processes.only_one(tmp_path / "work") as [descriptor]:
        assert descriptor > 2
