"""Pairs of texts that several test modules prepare."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsRun, prepare
from tests.corpora.parallel_text import STEPS, sentences, write


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    folder = tmp_path_factory.mktemp("inputs")
    sizes = {"train": 200, "valid": 15, "test": 13, "test1": 9}
    return {split: write(folder / split, sentences(size, seed)) for seed, (split, size) in enumerate(sizes.items())}


@pytest.fixture(scope="session")
def prepared(inputs: dict[str, tuple[Path, Path]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("outputs") / "prepared"
    prepare(STEPS, inputs, output, workers=2)
    return output


@pytest.fixture
def no_binarising(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out fairseq-preprocess, which takes seconds, where a test is about the steps before."""

    def write_bin(run: PairsRun, folder: Path, *_: object) -> str:
        for language in run.languages:
            path = folder / "bin" / f"dict.{language}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text("word 1\n")
        return "none"

    monkeypatch.setattr(PairsRun, "_write_bin", write_bin)
