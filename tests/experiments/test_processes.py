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


def test_two_trainings_in_one_folder(tmp_path: Path) -> None:
    with processes.only_one(tmp_path / "work"):
        with pytest.raises(InputError, match="a training is at work there"), processes.only_one(tmp_path / "work"):
            pass
    with processes.only_one(tmp_path / "work") as descriptor:
        assert descriptor > 2
