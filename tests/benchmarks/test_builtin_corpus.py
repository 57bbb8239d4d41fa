"""The grammars make what the package holds, byte by byte: recorded results are of these sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_plugins.corpora import builtin
from tests.commands import CHECKOUT, run_command

pytestmark = pytest.mark.slow  # the grammars draw for half a minute

FROZEN = CHECKOUT / "fairseq_plugins" / "corpora" / "builtin_texts"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    run_command(["python", str(CHECKOUT / "benchmarks" / "builtin_corpus.py"), str(folder)])
    return folder


@pytest.mark.parametrize("task", builtin.TASKS)
def test_the_grammars_make_the_frozen_bytes(folder: Path, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = builtin.read(task)
    assert (folder / f"{task}.txt").read_bytes() == (FROZEN / f"{task}.txt").read_bytes()
    # Not the archives: another version of xz may pack the same text in another way.
    monkeypatch.setattr(builtin, "_TEXTS", folder)
    assert builtin.read(task) == frozen
