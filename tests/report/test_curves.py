"""Learning curves: the points are those of the log, of one uninterrupted training."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.report import curves as learning_curves
from fairseq_plugins.report.curves import LOSS, MEASURES, LearningCurves, Measure
from fairseq_plugins.report.style import PALETTE


def inner(updates: float, loss: float, **more: float) -> dict[str, object]:
    return {"split": "train_inner", "num_updates": updates, "loss": loss, "lr": 0.25, **more}


def valid(updates: float, loss: float, **more: float) -> dict[str, object]:
    return {"split": "valid", "num_updates": updates, "loss": loss, **more}


def test_curves_of_a_log() -> None:
    curves = LearningCurves.of([inner(100, 8.0), inner(200, 7.0), valid(250, 6.5), inner(300, 6.0), valid(500, 6.0)])
    assert curves.training == [(100, 8.0), (200, 7.0), (300, 6.0)]
    assert curves.validation == [(250, 6.5), (500, 6.0)]
    assert curves.learning_rate == [(100, 0.25), (200, 0.25), (300, 0.25)]


def test_smoothing_of_labels_is_no_part_of_the_loss() -> None:
    curves = LearningCurves.of([inner(100, 8.0, nll_loss=7.5), valid(100, 6.0, nll_loss=5.5)])
    assert curves.training == [(100, 7.5)]
    assert curves.validation == [(100, 5.5)]


def test_what_was_lost_when_a_training_went_on_is_left_out() -> None:
    interrupted = [inner(100, 8.0), valid(150, 7.5), inner(200, 7.0), inner(300, 6.0), valid(300, 6.5)]
    resumed = [inner(200, 7.1), valid(300, 6.6)]
    curves = LearningCurves.of([*interrupted, *resumed])
    assert curves.training == [(100, 8.0), (200, 7.1)]
    assert curves.validation == [(150, 7.5), (300, 6.6)]


def test_a_short_training_has_the_points_of_its_epochs() -> None:
    epochs = [{"split": "train", "num_updates": number, "loss": 9 - number, "lr": 0.1} for number in (1, 2)]
    curves = LearningCurves.of([*epochs, {"split": "train", "epoch": 3}])
    assert curves.training == [(1, 8), (2, 7)]
    assert LearningCurves.of([]) == LearningCurves([], [], [])


@pytest.mark.parametrize("line", ['{"split": "val', "[1]", '{"loss": 1}'])
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps(inner(100, 8.0)) + "\n" + line, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        LearningCurves.load(path)
    assert str(raised.value) == f"{path}, line 2: not a line of statistics; delete this line"


def test_curves_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in (inner(1, 2.0), valid(3, 4.0))), encoding="utf-8")
    assert LearningCurves.load(path) == LearningCurves([(1, 2.0)], [(3, 4.0)], [(1, 0.25)])


def test_a_figure_shows_the_points_of_each_training() -> None:
    slow = LearningCurves([(100, 9.0), (200, 8.0)], [(200, 7.0)], [(100, 0.25), (200, 0.25)])
    fast = LearningCurves([(100, 6.0), (200, 5.0)], [(200, 4.0)], [(100, 0.001), (200, 0.0005)])
    losses, rates = learning_curves.draw({"slow": slow, "fast": fast}).axes
    assert [line.get_xydata().tolist() for line in losses.lines] == [
        [[100, 9], [200, 8]],
        [[200, 7]],
        [[100, 6], [200, 5]],
        [[200, 4]],
    ]
    assert [list(line.get_ydata()) for line in rates.lines] == [[0.25, 0.25], [0.001, 0.0005]]
    labels = [text.get_text() for text in losses.get_legend().get_texts()]
    assert labels == ["training", "validation", "slow", "fast"]
    colours = [line.get_color() for line in losses.lines]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert rates.get_yscale() == "log"


@pytest.mark.parametrize(
    ("measure", "label", "last", "scale", "drawn"),
    [
        (MEASURES["words"], "perplexity", 3.0, "log", [512, 8]),
        (MEASURES["words"], "perplexity", 7.0, "linear", [512, 128]),
        (MEASURES["characters"], "bits per character", 3.0, "linear", [9, 3]),
        (LOSS, "loss (bits)", 3.0, "linear", [9, 3]),
    ],
)
def test_language_models_have_measures_of_their_own(
    measure: Measure, label: str, last: float, scale: str, drawn: list[float]
) -> None:
    losses, _ = learning_curves.draw({"one": LearningCurves([(100, 9.0), (200, last)], [], [])}, measure).axes
    assert losses.get_ylabel() == label
    assert losses.get_yscale() == scale
    assert losses.lines[0].get_ydata().tolist() == drawn


def test_a_training_that_diverged_is_drawn() -> None:
    diverged = LearningCurves([(100, 9.0), (200, 5000.0)], [], [])
    drawn = io.BytesIO()
    learning_curves.draw({"one": diverged}, MEASURES["words"]).savefig(drawn, format="svg")
    assert b"</svg>" in drawn.getvalue()


def test_rates_of_the_same_size_begin_at_zero() -> None:
    curves = LearningCurves([(1, 2.0)], [], [(1, 0.0), (2, 0.001)])
    losses, rates = learning_curves.draw({"only": curves}).axes
    assert rates.get_yscale() == "linear"
    assert rates.get_ylim()[0] == 0
    assert [text.get_text() for text in losses.get_legend().get_texts()] == ["training", "validation"]
    with pytest.raises(ValueError, match="no learning curves"):
        learning_curves.draw({})


def test_a_single_point_is_seen() -> None:
    short = LearningCurves([(20, 9.7)], [], [(20, 3e-4)])
    losses, rates = learning_curves.draw({"short": short}).axes
    assert [axes.lines[0].get_marker() for axes in (losses, rates)] == [".", "."]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    channels = [int(digits, 16) / 255 for digits in re.findall("..", colour.removeprefix("#"))]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", PALETTE)
@pytest.mark.parametrize("ground", ["#ffffff", "#fcfcfa", "#14171a"])
def test_lines_are_seen_on_light_and_dark_ground(colour: str, ground: str) -> None:
    lighter, darker = sorted((luminance(colour), luminance(ground)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 3
