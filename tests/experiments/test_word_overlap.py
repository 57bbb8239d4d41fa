"""The baseline of rankers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_plugins.corpora.labelled_texts import LabelledTextsPreparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import recorded_runs, word_overlap


def write(folder: Path, is_ranking: bool) -> Path:
    """Two questions; the words of the first find its answer, those of the second do not."""
    preparation = LabelledTextsPreparation(texts=["question", "candidate"], is_ranking=is_ranking, metric="ranking")
    for name in preparation.dictionaries():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("a 1\n", encoding="utf-8")
    files = {
        "tokens/test.input0": ["who paid the doctor ?"] * 2 + ["where is it ?"] * 2,
        "tokens/test.input1": ["the pilot paid the doctor .", "rain ?", "it is here where ?", "at home ."],
        "raw/test.label": ["1", "0", "0", "1"],
        "raw/test.group": ["a", "a", "b", "b"],
    }
    for name, lines in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    preparation.save(folder)
    return folder


def test_it_is_recorded_beside_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRSEQ_PLUGINS_RESULTS", str(tmp_path / "results"))
    word_overlap.main([str(write(tmp_path / "data", is_ranking=True)), "--record", "wikiqa"])
    [record] = recorded_runs.load_all(tmp_path / "results")
    assert (record.dataset, record.system, record.scores["test"]["map"]) == ("wikiqa", "word_overlap", 75)
    assert record.statistics("test").tolist() == [[1, 1, 1], [0.5, 0.5, 1]]


def test_word_overlap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert word_overlap.overlap("who paid the doctor ?", "the pilot paid the doctor ?") == 3
    assert word_overlap.overlap("the the ?", "the the ?") == 1, "different words, and no punctuation"
    data = write(tmp_path / "data", is_ranking=True)
    word_overlap.main([str(data), "--work", str(tmp_path / "work")])
    found = json.loads((tmp_path / "work" / "results.json").read_text(encoding="utf-8"))
    assert (found["map"], found["mrr"]) == (75, 75)
    predicted = (tmp_path / "work" / "generate" / "test.predicted.tsv").read_text(encoding="utf-8")
    assert predicted == "predicted\n3\n0\n3\n0\n"
    assert "word overlap" in capsys.readouterr().out
    for suffix in "input0", "input1":
        (data / f"tokens/valid.{suffix}").write_text("no\n" * 4, encoding="utf-8")
    (data / "raw/valid.label").write_text("0\n1\n0\n1\n", encoding="utf-8")
    (data / "raw/valid.group").write_bytes((data / "raw/test.group").read_bytes())
    word_overlap.main([str(data), "--subset", "valid", "--work", str(tmp_path / "other")])
    found = json.loads((tmp_path / "other" / "results.json").read_text(encoding="utf-8"))
    assert found["subsets"]["valid"]["map"] == 50
    (tmp_path / "model").mkdir()
    results = tmp_path / "model" / "results.json"
    results.write_text('{"checkpoint": "a.pt", "map": 99}', encoding="utf-8")
    with pytest.raises(InputError, match="model: the results of a model, which would be overwritten; name another --w"):
        word_overlap.main([str(data), "--work", str(results.parent)])
    assert json.loads(results.read_text(encoding="utf-8"))["map"] == 99
    with pytest.raises(InputError, match="no questions with candidates; prepare them with --group"):
        word_overlap.main([str(write(tmp_path / "pairs", is_ranking=False))])


def test_text_without_spaces_overlaps_by_characters(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", is_ranking=True)
    sides = ["今天的天气怎么样"] * 2 + ["他在哪里学习"] * 2, ["他在学校", "今天天气很好", "今天很好", "在学校学习"]
    for side, lines in enumerate(sides):
        (folder / "tokens" / f"test.input{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    word_overlap.main([str(folder), "--work", str(tmp_path / "work")])
    written = (tmp_path / "work" / "generate" / "test.predicted.tsv").read_text(encoding="utf-8").split()
    assert written == ["predicted", "0", "3", "0", "3"]
