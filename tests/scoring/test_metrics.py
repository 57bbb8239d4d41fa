"""Metrics: what every one of them says of itself, and how it is found by its name."""

from __future__ import annotations

import math
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.scoring import metrics
from fairseq_plugins.scoring.metrics import (
    Column,
    Metric,
    Outputs,
    References,
    all_metrics,
    metric_named,
    metrics_of,
    read_numbers,
    register_metric,
)

LINES = ["the cat sat on the mat .", "a b c d"]
REFERENCES = References([["the cat sat on a mat .", "a b c e"]], [["The cat sat on a mat.", "a b c e"]])
OUTPUTS = Outputs(LINES, ["The cat sat on the mat.", "a b c d"], [[-1.0, -2.0], [-3.0]])


def test_a_metric_is_found_by_its_name(toy_perplexity: Metric) -> None:
    assert {"bleu", "rouge", "toy_perplexity"} <= {metric.name for metric in all_metrics()}
    assert metric_named("toy_perplexity") is toy_perplexity
    with pytest.raises(InputError, match="no metric 'rogue'; did you mean 'rouge'\\?; there are .*bleu, .*rouge"):
        metric_named("rogue")


def test_a_name_belongs_to_one_metric(toy_perplexity: Metric) -> None:
    register_metric(type(toy_perplexity)())

    class Other(type(toy_perplexity)):
        pass

    with pytest.raises(ValueError, match="there is a metric 'toy_perplexity' already, ToyPerplexity"):
        register_metric(Other())


def test_metrics_of_results() -> None:
    assert [metric.name for metric in metrics_of({"rouge2": 1.0, "updates": 5})] == ["rouge"]
    assert metrics_of({"updates": 5}) == []


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter", "rouge", "rouge_lsum", "exact_match", "cer", "toy_perplexity"])
def test_what_every_metric_holds_to(name: str, toy_perplexity: Metric) -> None:
    metric = metric_named(name)
    scores = metric.scores(OUTPUTS, REFERENCES)
    rows = metric.statistics(OUTPUTS, REFERENCES)
    for column, value in zip(metric.columns, metric.scores_of(rows.sum(axis=0)), strict=True):
        assert scores[column.key] == pytest.approx(value, abs=0.005)
        assert isinstance(scores[column.signature], str)
        single = metric.only(column.key)
        assert [kept.key for kept in single.columns] == [column.key]
        assert single.scores_of(single.statistics(OUTPUTS, REFERENCES).sum(axis=0)) == pytest.approx([value])
    assert metric.main in metric.columns
    assert metric.explanations(scores) and metric.explanations({}) == []
    assert len(metric.sentence_scores(OUTPUTS, REFERENCES)) == 2
    compared = metric.compare(OUTPUTS, OUTPUTS, REFERENCES, samples=5)
    assert {key: one.p_value for key, one in compared.items()} == {column.key: 1 for column in metric.columns}
    for key, one in compared.items():
        assert one.baseline.score == pytest.approx(scores[key], abs=0.005)
        assert "bs:5|seed:12345" in one.signature


def test_lower_is_better(toy_perplexity: Metric) -> None:
    assert toy_perplexity.scores(OUTPUTS, REFERENCES)["toy_perplexity"] == pytest.approx(math.exp(2), abs=0.005)
    assert toy_perplexity.sentence_scores(OUTPUTS, REFERENCES) == pytest.approx(np.exp([1.5, 3]))
    column = toy_perplexity.main
    assert [column.comparative(difference) for difference in (-1, 0, 1)] == ["better", "equal", "worse"]
    assert [Column("x", "x").comparative(difference) for difference in (-1, 0, 1)] == ["worse", "equal", "better"]
    with pytest.raises(InputError, match="toy perplexity needs the probability of each token"):
        toy_perplexity.scores(Outputs(LINES, LINES), REFERENCES)


def test_the_papers_figures() -> None:
    bleu, rouge = metric_named("bleu"), metric_named("rouge")
    assert bleu.paper_figures({"system": "a", "bleu": 31.0}, "test") == {"bleu_tokenized": 31.0}
    assert bleu.paper_figures({"nist04": 40.0, "nist05": 41.0}, "nist05") == {"bleu_tokenized": 41.0}
    assert bleu.paper_figures({"nist04": 40.0}, "test") == {}
    assert rouge.paper_figures({"rouge1": 1.0, "rougeL": 3.0}, "test") == {"rouge1": 1.0, "rougeL": 3.0}


def test_intervals_stand_beside_their_column() -> None:
    rouge = metric_named("rouge")
    scores = rouge.scores(OUTPUTS, REFERENCES)
    low, high = rouge.interval(scores, rouge.columns[0])
    assert low <= scores["rouge1"] <= high
    assert metric_named("bleu").interval(scores, metric_named("bleu").main) is None


def test_a_metrics_own_options() -> None:
    parser = ArgumentParser()
    for metric in all_metrics():
        metric.add_arguments(parser)
    bleu = metric_named("bleu")
    for given, key in ([], "bleu_tokenized"), (["--tokenize", "13a"], "bleu_sacrebleu"):
        assert [column.key for column in bleu.configured(parser.parse_args(given)).columns] == [key]


def test_numbers_out_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_text("-1.5 2\n\n3e-1\n")
    assert read_numbers(path) == [[-1.5, 2.0], [], [0.3]]
    path.write_text("1\nx 2\n")
    with pytest.raises(InputError, match="numbers, line 2: could not convert string to float: 'x'; numbers between"):
        read_numbers(path)


def test_built_in_metrics_are_imported_when_they_are_asked_for() -> None:
    assert set(metrics.BUILT_IN) <= {metric.name for metric in all_metrics()}


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter", "rouge", "rouge_lsum", "exact_match", "cer"])
@pytest.mark.parametrize("references", [[["a b"], ["x"]], [["a b"]], []])
def test_a_list_of_references_for_each_output_is_refused(name: str, references: list[list[str]]) -> None:
    """They are lists of all outputs' references; as it is, the first output would be scored by all, and no other."""
    outputs = Outputs(["a b", "c d"], ["a b", "c d"])
    with pytest.raises(ValueError, match="2 hypotheses, but references: (1, 1|1|none); give lists of as many lines"):
        metric_named(name).statistics(outputs, References(references, references))
