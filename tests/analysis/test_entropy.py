"""Tests of the entropy of alignments."""

from __future__ import annotations

import math

import pytest
import torch

from fairseq_plugins.analysis.entropy import draw, entropies, mean_entropies, sentence_entropy

from .models import model_of_architecture, model_with_attention, pair


def test_known_distributions() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]])
    assert sentence_entropy(weights) == pytest.approx((0 + math.log(4) + math.log(2)) / 3)


def test_tokens_are_averaged_within_a_sentence_then_sentences() -> None:
    uniform, certain = torch.full((1, 2), 0.5), torch.tensor([[1.0, 0.0]] * 3)
    found = mean_entropies([{"cc": uniform, "aa": certain}, {"cc": certain, "aa": certain}])
    assert found == {"cc": pytest.approx(math.log(2) / 2), "aa": 0.0}


def test_a_model_that_copies_is_certain() -> None:
    model = model_with_attention("identity")
    assert entropies(model, [pair(model, length, length) for length in (4, 1, 9)]) == {"attention": 0.0}


def test_padding_does_not_count() -> None:
    model = model_with_attention("uniform")
    lengths = [3, 1, 8, 5, 2]
    expected = sum(math.log(length + 1) for length in lengths) / len(lengths)
    found = entropies(model, [pair(model, length, 2 * length) for length in lengths])
    assert found == {"attention": pytest.approx(expected, rel=1e-12)}


def test_every_flow_of_double_path_networks() -> None:
    model = model_of_architecture("dpn_iwslt_de_en")
    found = entropies(model, [pair(model, 5, 4), pair(model, 2, 7)])
    assert list(found) == ["cc", "ca", "ac", "aa"]
    # Six source tokens at most.
    assert all(0 < value < math.log(6) for value in found.values())
    axis = draw(found).axes[0]
    assert [bar.get_width() for bar in axis.patches] == list(found.values())
