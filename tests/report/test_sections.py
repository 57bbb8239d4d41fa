"""What reports show of trained models."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.report import sections

from ..analysis.models import model_with_attention


def test_lengths_are_those_of_the_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters, where the source has hardly a space."""
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "test.zh").write_text("今天天气很好。\n他在学校学习中文和数学\n", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    for side in "zh", "en":
        (tmp_path / "bin" / f"dict.{side}.txt").write_text("w1 1\n")
    PairsPreparation("zh", "en", bpe="none").save(tmp_path)
    references = SimpleNamespace(references=lambda data, subset: None)
    monkeypatch.setattr(sections, "decoding_of", lambda metric: references)
    found: list[int] = []

    def scores_by_length(systems: object, references: object, lengths: list[int], *_: object) -> None:
        found.extend(lengths)
        raise InputError("enough")

    monkeypatch.setattr(sections.length, "scores_by_length", scores_by_length)
    assert sections.length_figures({}, PreparedData.load(tmp_path), SimpleNamespace()) == []
    assert found == [6, 11]


def test_systems_of_a_table_read_their_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DPN-S2S has a joined dictionary, its baselines have one for each side."""
    loaded = {}

    def load(paths: list[Path], data: Path) -> object:
        loaded[paths[0].parent.name] = data
        return model_with_attention("identity")

    monkeypatch.setattr(sections.TranslationModel, "load", load)
    works = {}
    for name in "joined", "separate":
        data, work = tmp_path / f"{name} data", tmp_path / name
        for folder in "tokens", "raw", "bin":
            (data / folder).mkdir(parents=True)
        for side in "de", "en":
            (data / "tokens" / f"test.{side}").write_text("w1 w2\n")
            (data / "raw" / f"test.{side}").write_text("w1 w2\n")
            (data / "bin" / f"dict.{side}.txt").write_text("w1 1\n")
        PairsPreparation("de", "en", bpe="none").save(data)
        (work / "generate").mkdir(parents=True)
        for file in "test.tok.en", "test.en":
            (work / "generate" / file).write_text(f"w1 {name}\n")
        (work / "generate" / "test.log_probabilities.en").write_text("-1 -1 -1\n")
        (work / "model.pt").write_text("")
        found = {"data": str(data), "checkpoint": str(work / "model.pt")}
        Run(work).write(found)
        works[name] = Run(work)
    [sample] = sections.aligned_samples(works, PreparedData.load(tmp_path / "joined data"), 5)
    assert loaded == {name: tmp_path / f"{name} data" for name in works}
    assert sample.hypotheses == {"joined": "w1 joined", "separate": "w1 separate"}
    assert sample.alignments["separate"].target == ["w1", "separate"]
    assert sample.alignments["separate"].flows == {"mean": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]}
