"""Accuracy with McNemar's test, MAP and MRR: against their libraries and by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, average_precision_score

from fairseq_plugins.errors import InputError
from fairseq_plugins.scoring.accuracy import confusion, mcnemar
from fairseq_plugins.scoring.metrics import Outputs, References, metric_named
from fairseq_plugins.scoring.predictions import write_predictions
from fairseq_plugins.scoring.ranking import question_scores


def outputs(*lines: str) -> Outputs:
    return Outputs(lines, lines)


def references(*lines: str) -> References:
    return References([list(lines)], [list(lines)])


def test_accuracy() -> None:
    labels, predicted = ["a", "b", "b", "c"], ["a", "b", "c", "c"]
    found = metric_named("accuracy").scores(outputs(*predicted), references(*labels))
    assert found["accuracy"] == 75 == 100 * accuracy_score(labels, predicted)
    assert confusion(predicted, labels, ["a", "b", "c"]) == [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    with pytest.raises(ValueError):
        metric_named("accuracy").scores(outputs("a"), references(*labels))


def test_mcnemar_by_hand() -> None:
    """Of 5 examples that one of two has right, the first has 1: 2 * (C(5,0) + C(5,1)) / 2^5."""
    assert mcnemar(1, 4) == pytest.approx(2 * (1 + 5) / 32)
    assert mcnemar(0, 0) == 1 == mcnemar(3, 3)
    labels = ["a"] * 8
    baseline, system = ["b"] * 6 + ["a"] * 2, ["a"] * 7 + ["b"]
    compared = metric_named("accuracy").compare(outputs(*baseline), outputs(*system), references(*labels))["accuracy"]
    assert compared.p_value == pytest.approx(mcnemar(1, 6)) == pytest.approx(2 * (1 + 7) / 2**7)
    assert compared.difference == pytest.approx(100 * (7 - 2) / 8)
    assert compared.signature.endswith("|test:mcnemar-exact|accuracy")


def test_ranking_by_hand() -> None:
    """The first question's right ones come 1st and 3rd: AP (1 + 2/3) / 2. The second's comes 2nd: AP and RR 1/2."""
    rows = question_scores([0.9, 0.8, 0.7, 0.1, 0.2], [True, False, True, True, False], ["q", "q", "q", "r", "r"])
    assert rows == pytest.approx(np.array([[5 / 6, 1, 1], [1 / 2, 1 / 2, 1]]))
    scored = outputs("0.9", "0.8", "0.7", "0.1", "0.2")
    found = metric_named("ranking").scores(scored, references("q 1", "q 0", "q 1", "r 1", "r 0"))
    assert (found["map"], found["mrr"]) == (pytest.approx(100 * (5 / 6 + 1 / 2) / 2, abs=0.005), 75)
    assert "ties:random-12345" in found["map_signature"]


def test_average_precision_is_scikit_learn_s() -> None:
    generator = np.random.default_rng(1)
    scores, right = generator.normal(size=30), generator.integers(0, 2, 30).astype(bool)
    [[precision, _, _]] = question_scores(scores, right, ["q"] * 30)
    assert precision == pytest.approx(average_precision_score(right, scores))


def test_ties_are_broken_at_random_with_a_seed() -> None:
    """A constant score of many questions, each with its right candidate first, is worth what chance is worth."""
    questions = [str(number) for number in range(400) for _ in range(5)]
    right = [place == 0 for _ in range(400) for place in range(5)]
    rows = question_scores([0.5] * 2000, right, questions)
    chance = sum(1 / rank for rank in range(1, 6)) / 5
    assert rows[:, 1].mean() == pytest.approx(chance, abs=0.05)
    assert (rows == question_scores([0.5] * 2000, right, questions)).all()
    untied = question_scores([-place for _ in range(400) for place in range(5)], right, questions)
    assert untied[:, 1].mean() == 1


def test_questions_may_hold_spaces() -> None:
    made = Outputs(["0.5", "0.1", "0.2"], ["0.5", "0.1", "0.2"], [[], [], []])
    assert metric_named("ranking").scores(made, references("who is it 1", "who is it 0", "why 1"))["map"] == 100


def test_scores_that_are_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_text("0.5\nhigh\n", encoding="utf-8")
    with pytest.raises(InputError, match="scores: 'high', of candidate 2, is no score"):
        metric_named("ranking").read(path)
    with pytest.raises(ValueError, match="a score is no number"):
        question_scores([math.nan], [True], ["q"])
    made = Outputs(["0.5", "nan"], ["0.5", "nan"], [[], []])
    with pytest.raises(InputError, match="the score of candidate 2 is nan: the training diverged; lower --lr"):
        metric_named("ranking").scores(made, references("who 1", "who 0"))


def test_predictions_are_read_as_they_were_written(tmp_path: Path) -> None:
    made = Outputs(["a", "b"], ["a", "b"], [[-0.25, -1.5], [-2.0, -0.125]])
    write_predictions(tmp_path / "predicted.tsv", made, ["a", "b"])
    assert metric_named("accuracy").read(tmp_path / "predicted.tsv") == made
    assert (tmp_path / "predicted.tsv").read_text(encoding="utf-8").startswith("predicted\ta\tb\na\t-0.25")
    (tmp_path / "plain").write_text("a\nb\n", encoding="utf-8")
    assert metric_named("accuracy").read(tmp_path / "plain").tokens == ["a", "b"]
    (tmp_path / "damaged").write_text("predicted\ta\na\tx\n", encoding="utf-8")
    with pytest.raises(InputError, match="damaged, line 2: could not convert string to float: 'x'; evaluate"):
        metric_named("accuracy").read(tmp_path / "damaged")


def test_copy_memory_by_hand() -> None:
    metric = metric_named("copy_memory")
    made = Outputs(["1 2", "3 3"], ["1 2", "3 3"], [[-0.5, -0.5], [-1.0, -2.0]])
    found = metric.scores(made, references("1 2", "3 4"))
    assert (found["copy_cross_entropy"], found["copy_accuracy"]) == (1.0, 75)
    assert metric.main.comparative(-0.1) == "better", "lower is better"
