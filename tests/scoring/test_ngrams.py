"""n-gram models of a text."""

from __future__ import annotations

import math

import pytest

from fairseq_plugins.scoring.ngrams import ngram_log_probabilities


def test_unigrams() -> None:
    # a 3, b 1, ends 2; with one more for each of the four types, the unknown word among them.
    [values] = ngram_log_probabilities(["a a b", "a"], ["a zebra"], order=1)
    assert values == pytest.approx([math.log(4 / 10), math.log(1 / 10), math.log(3 / 10)])


def test_longer_ones_give_unknown_words_no_probability() -> None:
    [values] = ngram_log_probabilities(["a a b", "a"] * 3, ["a zebra"], order=3)
    assert values[1] == -math.inf
    assert math.isfinite(values[0]) and math.isfinite(values[2])


def test_longer_ones_know_what_follows() -> None:
    train = ["a b c"] * 20 + ["c b"]
    unigrams, trigrams = (ngram_log_probabilities(train, ["a b c", "a b"], order) for order in (1, 3))
    assert [len(line) for line in trigrams] == [4, 3]
    assert sum(map(sum, trigrams)) > sum(map(sum, unigrams)) + 3
    assert trigrams[0][2] > math.log(0.9)
