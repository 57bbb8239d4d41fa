"""Tests of the entropy of alignments."""

from __future__ import annotations

import math

import pytest
import torch

from fairseq_plugins.decoding.attention import Focus, focus, focus_of, sentence_entropy
from fairseq_plugins.decoding.forced_decoding import Reading

from ..analysis.models import model_of_architecture, model_with_attention, pair


def test_known_distributions() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]])
    assert sentence_entropy(weights) == pytest.approx((0 + math.log(4) + math.log(2)) / 3)


def test_tokens_are_averaged_within_a_sentence_then_sentences() -> None:
    uniform, certain = torch.full((1, 2), 0.5), torch.tensor([[1.0, 0.0]] * 3)
    short = Reading({"cc": uniform, "aa": certain}, {"cnn.san": torch.tensor([[1.0, 0.0]])})
    long = Reading({"cc": certain, "aa": certain}, {"cnn.san": torch.tensor([[0.0, 0.3], [0.0, 0.3], [0.3, 0.3]])})
    found = focus_of([short, long])
    assert found.entropy == {"cc": pytest.approx(math.log(2) / 2), "aa": 0.0}
    assert found.gates == {"cnn.san": [pytest.approx((1 + 0.1) / 2), pytest.approx((0 + 0.3) / 2)]}
    assert found.uniform == pytest.approx(math.log(2))


def test_a_warning_for_each_shut_gate_and_each_flow_that_found_nothing() -> None:
    entropy = {"cc": 1.0, "ca": 1.9, "ac": 1.0, "aa": 1.9}
    fine = Focus(entropy, {"cnn.san": [0.011, 0.5], "output.san": [0.989]}, 2.0)
    assert fine.warnings() == []
    gates = {"cnn.san": [0.5, 0.009], "san.cnn": [0.995], "output.san": [0.0]}
    flow, *shut = Focus({**entropy, "aa": 1.97}, gates, 2.0).warnings()
    assert "SAN to SAN" in flow and "1.970" in flow and "2.000" in flow
    assert [text.partition(":")[0] for text in shut] == [
        "gates of the CNN path, layer 2",
        "gates of the SAN path, layer 1",
        "gate of the output",
    ]
    assert [text.split()[text.split().index("for") + 2] for text in shut] == ["SAN", "SAN", "SAN"]


def test_of_three_paths_each_can_be_shut() -> None:
    entropy = dict.fromkeys(["cc", "ca", "cr"], 1.0)
    [warning] = Focus(entropy, {"cnn.san": [0.6], "cnn.rnn": [0.399]}, 2.0).warnings()
    assert warning.startswith("gates of the CNN path, layer 1: shut for the CNN encoder, whose share is 0.0010")
    [warning] = Focus(entropy, {"cnn.san": [0.6], "cnn.rnn": [0.001]}, 2.0).warnings()
    assert "shut for the RNN encoder" in warning


def test_a_model_that_copies_is_certain() -> None:
    model = model_with_attention("identity")
    assert focus(model, [pair(model, length, length) for length in (4, 1, 9)])[:2] == ({"attention": 0.0}, {})


def test_padding_does_not_count() -> None:
    model = model_with_attention("uniform")
    lengths = [3, 1, 8, 5, 2]
    expected = sum(math.log(length + 1) for length in lengths) / len(lengths)
    found = focus(model, [pair(model, length, 2 * length) for length in lengths])
    assert found.entropy == {"attention": pytest.approx(expected, rel=1e-12)}
    assert found.uniform == pytest.approx(expected, rel=1e-12)
    assert len(found.warnings()) == 1


@pytest.mark.system
def test_every_flow_of_double_path_networks() -> None:
    model = model_of_architecture("dpn_iwslt_de_en")
    found, gates, _ = focus(model, [pair(model, 5, 4), pair(model, 2, 7)])
    assert gates == {"cnn.san": [0.5] * 4, "san.cnn": [0.5] * 2, "output.san": [0.5]}, "gates start half open"
    assert list(found) == ["cc", "ca", "ac", "aa"]
    # Six source tokens at most.
    assert all(0 < value < math.log(6) for value in found.values())
