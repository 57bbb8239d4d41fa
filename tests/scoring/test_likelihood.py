"""Perplexity and bits per character."""

from __future__ import annotations

import math

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.scoring.metrics import Outputs, References, metric_named

REFERENCES = References([["a b c", "d"]], [["a b c", "d"]])
OUTPUTS = Outputs(["", ""], ["", ""], [[math.log(1 / 8)] * 4, [math.log(1 / 2)] * 2])


def test_scores() -> None:
    # 4 tokens of 3 bits and 2 of 1.
    bits = 14 / 6
    scores = metric_named("perplexity").scores(OUTPUTS, REFERENCES)
    assert scores == {
        "perplexity": pytest.approx(2**bits, abs=0.005),
        "perplexity_signature": "tokens:6|line_ends:yes|perplexity",
    }
    assert metric_named("bits_per_character").scores(OUTPUTS, REFERENCES)["bits_per_character"] == round(bits, 4)
    assert metric_named("perplexity").sentence_scores(OUTPUTS, REFERENCES).tolist() == pytest.approx([8, 2])


def test_lower_is_better() -> None:
    worse = Outputs(["", ""], ["", ""], [[math.log(1 / 16)] * 4, [math.log(1 / 4)] * 2])
    metric = metric_named("perplexity")
    compared = metric.compare(worse, OUTPUTS, REFERENCES)["perplexity"]
    assert metric.main.comparative(compared.difference) == "better"


def test_figures_of_the_paper() -> None:
    assert metric_named("perplexity").paper_figures({"valid": 60.7, "test": 58.8}, "test") == {"perplexity": 58.8}
    assert metric_named("bits_per_character").paper_figures({"bpc": 1.31}, "test") == {"bits_per_character": 1.31}


def test_probabilities_are_needed() -> None:
    with pytest.raises(InputError, match="perplexity needs the probability of each token"):
        metric_named("perplexity").scores(Outputs([""], [""]), REFERENCES)
