"""The surprise of each word of a line, system by system."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fairseq_plugins.corpora.running_text import RunningTextPreparation
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.report.sections import learning_curves_figure
from fairseq_plugins.report.surprise import draw_surprise, surprise_figures


@pytest.fixture
def works(tmp_path: Path) -> dict[str, Path]:
    """Two systems that have read three lines, of which one is long enough."""
    lines = ["one two", "a b c d e f g", "three"]
    data = tmp_path / "data"
    for folder in "bin", "tokens":
        (data / folder).mkdir(parents=True)
    (data / "bin" / "dict.txt").write_text("a 1\n")
    (data / "tokens" / "test.txt").write_text("".join(f"{line}\n" for line in lines))
    RunningTextPreparation().save(data)
    works = {}
    for name, probability in (("LSTM", 0.5), ("MC-RNN-3", 0.25)):
        works[name] = tmp_path / name
        (works[name] / "generate").mkdir(parents=True)
        rows = [" ".join([str(math.log(probability))] * (len(line.split()) + 1)) for line in lines]
        (works[name] / "generate" / "test.log_probabilities.txt").write_text("\n".join(rows) + "\n")
        found = {"data": str(data), "checkpoint": "best.pt"}
        (works[name] / "results.json").write_text(json.dumps(found))
    return works


def runs_in(works: dict[str, Path]) -> dict[str, Run]:
    return {name: Run(work) for name, work in works.items()}


def test_a_line_is_chosen(works: dict[str, Path]) -> None:
    [figure] = surprise_figures(runs_in(works))
    assert "Line 2 of the test set" in figure.caption
    assert figure.svg.startswith("<svg")


@pytest.mark.system
@pytest.mark.parametrize(("units", "label"), [("words", "perplexity"), ("characters", "bits per character")])
def test_curves_are_in_what_the_models_are_scored_by(
    works: dict[str, Path], tmp_path: Path, units: str, label: str
) -> None:
    for work in works.values():
        (work / "train.jsonl").write_text('{"split": "train_inner", "num_updates": 1, "loss": 3.0, "lr": 1.0}\n')
    RunningTextPreparation(units=units).save(tmp_path / "data")
    figure = learning_curves_figure(runs_in(works))
    assert label in figure.svg and "loss (bits)" not in figure.svg
    assert figure.caption.lower().startswith(label)
    (tmp_path / "data" / "preparation.json").unlink()
    figure = learning_curves_figure(runs_in(works))
    assert "loss (bits)" in figure.svg, "what the text was made of is not known any more"


def test_what_an_earlier_checkpoint_read_is_left_out(works: dict[str, Path], tmp_path: Path) -> None:
    for work in works.values():
        found = json.loads((work / "results.json").read_text())
        (work / "results.json").write_text(json.dumps({"data": found["data"], "updates": 9}))
    assert surprise_figures(runs_in(works)) == []


def test_nothing_to_show(works: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "data" / "tokens" / "test.txt").write_text("another text\n")
    assert surprise_figures(runs_in(works)) == []
    assert surprise_figures({}) == []


def test_bars() -> None:
    figure = draw_surprise(["a", "b", "</s>"], {"LSTM": [1.0, 2.0, 3.0], "MC-RNN-3": [4.0, 5.0, 6.0]})
    [axis] = figure.axes
    assert [bar.get_height() for bar in axis.patches] == [1, 2, 3, 4, 5, 6]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["a", "b", "</s>"]
