"""Confusion matrices and curves of sequence tasks."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest

from fairseq_plugins.corpora.labelled_texts import LabelledTextsPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.report import confusion_matrices, progress
from fairseq_plugins.report.page import Drawing
from fairseq_plugins.report.progress import PROGRESS, draw_progress, read_points


@pytest.fixture
def data(tmp_path: Path) -> PreparedData:
    folder = tmp_path / "data"
    for name in "input0", "label":
        (folder / "bin" / name).mkdir(parents=True)
        (folder / "bin" / name / "dict.txt").write_text("a 1\n", encoding="utf-8")
    (folder / "raw").mkdir()
    (folder / "raw" / "test.label").write_text("no\nyes\nyes\n", encoding="utf-8")
    LabelledTextsPreparation(texts=["text"], labels=["no", "yes"]).save(folder)
    return PreparedData.load(folder)


def evaluated(work: Path, *predicted: str) -> Path:
    (work / "generate").mkdir(parents=True)
    text = "predicted\tno\tyes\n" + "".join(f"{label}\t-0.1\t-2.3\n" for label in predicted)
    (work / "generate" / "test.predicted.tsv").write_text(text, encoding="utf-8")
    (work / "results.json").write_text('{"checkpoint": "best.pt"}', encoding="utf-8")
    return work


def figures(works: dict[str, Path], data: PreparedData) -> list[Drawing]:
    return confusion_matrices.figures({name: Run(work) for name, work in works.items()}, data)


def test_a_confusion_matrix_of_each_system(data: PreparedData, tmp_path: Path) -> None:
    works = {"RCRN": evaluated(tmp_path / "a", "no", "no", "yes"), "not evaluated": tmp_path / "b"}
    [drawing] = figures(works, data)
    assert drawing.title == "RCRN: confusion matrix" and drawing.svg.startswith("<svg")
    figure = confusion_matrices.draw_confusion([[1, 0], [1, 1]], ["no", "yes"])
    [axis] = figure.axes
    assert [text.get_text() for text in axis.texts] == ["1", "0", "1", "1"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["no", "yes"]
    (tmp_path / "a" / "results.json").write_text('{"updates": 9}', encoding="utf-8")
    assert not figures(works, data), "the training has gone on since"
    with pytest.raises(InputError, match="1 predictions of 3 examples; evaluate it again"):
        figures({"old": evaluated(tmp_path / "c", "no")}, data)


def test_each_system_has_the_labels_of_its_own_data(data: PreparedData, tmp_path: Path) -> None:
    shutil.copytree(data.folder, tmp_path / "other")
    (tmp_path / "other" / "raw" / "test.label").write_text("yes\nno\nno\n", encoding="utf-8")
    work = evaluated(tmp_path / "a", "yes", "no", "no")
    results = {"checkpoint": "best.pt", "data": str(tmp_path / "other")}
    (work / "results.json").write_text(json.dumps(results), encoding="utf-8")
    [drawing] = figures({"RCRN": work}, data)
    figure = confusion_matrices.draw_confusion([[2, 0], [0, 1]], ["no", "yes"])
    assert texts(drawing.svg)[-4:] == texts(confusion_matrices.inline_svg(figure, "x"))[-4:]


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)<", svg)


def statistics(path: Path, *records: tuple[str, int, float]) -> Path:
    path.mkdir(parents=True)
    lines = [json.dumps({"split": split, "epoch": 1, "num_updates": n, "loss": v}) for split, n, v in records]
    (path / "train.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_copy_memory_is_drawn_in_nats_with_a_panel_for_each_length(tmp_path: Path) -> None:
    first = statistics(tmp_path / "a", ("train_inner", 20, 3.0), ("train_inner", 40, 2.0), ("valid", 40, 1.0))
    again = statistics(tmp_path / "b", ("train_inner", 20, 3.0), ("train_inner", 40, 9.0), ("train_inner", 40, 1.0))
    shown = PROGRESS["copy_memory"]
    assert read_points(first / "train.jsonl", shown) == [(20, math.log(8)), (40, pytest.approx(math.log(4)))]
    assert [n for n, _ in read_points(again / "train.jsonl", shown)] == [20, 40]
    works = {"tanh, T = 500": first, "LSTM, T = 500": again, "tanh, T = 1000": first, "untrained, T = 500": tmp_path}
    runs = {name: Run(work) for name, work in works.items()}
    [drawing] = progress.figures(runs, "copy_memory")
    assert "ln 8" in drawing.caption
    panels = {"T = 500": {"tanh": [(20, 2.0)], "LSTM": [(20, 1.0)]}, "T = 1000": {"tanh": [(20, 2.0)]}}
    figure = draw_progress(panels, shown)
    assert [axis.get_title("left") for axis in figure.axes] == ["T = 500", "T = 1000"]
    assert figure.axes[0].get_ylabel() == "cross-entropy (nats)"
    assert [line.get_ydata()[0] for line in figure.axes[0].get_lines()] == [2.0, 1.0, pytest.approx(math.log(8))]
    assert progress.figures(runs, "bleu") == [] == progress.figures({"untrained": Run(tmp_path)}, "accuracy")
