"""Fixtures of the tests of experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.corpora.running_text import RunningTextPreparation
from fairseq_plugins.experiments.prepared_data import PreparedData


@pytest.fixture
def data(tmp_path: Path) -> PreparedData:
    """Prepared data as far as commands look at it: preparation.json and dictionaries, in a folder with a space."""
    folder = tmp_path / "prepared data"
    (folder / "bin").mkdir(parents=True)
    for language in "de", "en":
        (folder / "bin" / f"dict.{language}.txt").write_text("a 1\n", encoding="utf-8")
    PairsPreparation(source_lang="de", target_lang="en", lowercase=True, tokenizer="moses").save(folder)
    return PreparedData.load(folder)


@pytest.fixture
def text_data(tmp_path: Path) -> PreparedData:
    """The same of running text."""
    folder = tmp_path / "prepared text"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "dict.txt").write_text("a 1\n", encoding="utf-8")
    RunningTextPreparation().save(folder)
    return PreparedData.load(folder)
