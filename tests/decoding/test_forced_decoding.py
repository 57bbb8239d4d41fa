"""Tests of forced decoding: attention of real tokens alone, whatever is in the same batch."""

from __future__ import annotations

import pytest
import torch

from fairseq_plugins.decoding.forced_decoding import forced_decoding
from fairseq_plugins.errors import InputError

from ..analysis.models import model_of_architecture, model_with_attention, pair

LENGTHS = [(3, 5), (7, 2), (1, 1), (5, 5), (12, 9), (4, 11)]
ARCHITECTURES = [
    "rnnsearch_iwslt_de_en",
    "mc_rnn_iwslt_de_en",
    "dpn_iwslt_de_en",
    "cnn_deeper_iwslt_de_en",
    "san_deeper_iwslt_de_en",
    "lstm",
]


def test_attention_of_a_known_model_in_a_padded_batch() -> None:
    model = model_with_attention("identity")
    pairs = [pair(model, source, target) for source, target in LENGTHS]
    found = dict(forced_decoding(model, pairs))
    assert sorted(found) == list(range(len(pairs)))
    for index, (source, target) in enumerate(LENGTHS):
        expected = torch.eye(target + 1, source + 1, dtype=torch.float64)
        torch.testing.assert_close(found[index].flows["attention"], expected)


@pytest.mark.system
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_batch_mates_do_not_change_attention(architecture: str) -> None:
    model = model_of_architecture(architecture)
    pairs = [pair(model, source, target, first) for first, (source, target) in enumerate(LENGTHS)]
    together = dict(forced_decoding(model, pairs))
    for index, one in enumerate(pairs):
        [(_, (alone, gates))] = forced_decoding(model, [one])
        assert list(alone) == (["cc", "ca", "ac", "aa"] if architecture.startswith("dpn") else ["attention"])
        for name, weights in alone.items():
            assert weights.shape == (LENGTHS[index][1] + 1, LENGTHS[index][0] + 1)
            torch.testing.assert_close(together[index].flows[name], weights, rtol=1e-6, atol=1e-8)
            torch.testing.assert_close(weights.sum(1), torch.ones_like(weights[:, 0]), rtol=1e-6, atol=1e-6)
        assert list(gates) == (["cnn.san", "san.cnn", "output.san"] if architecture.startswith("dpn") else [])
        for name, values in gates.items():
            torch.testing.assert_close(together[index].gates[name], values, rtol=1e-6, atol=1e-8)
            assert values.shape == (LENGTHS[index][1] + 1, {"cnn.san": 4, "san.cnn": 2, "output.san": 1}[name])


def test_more_pairs_than_a_batch_holds() -> None:
    model = model_with_attention("uniform")
    pairs = [pair(model, 1 + i % 9, 2) for i in range(70)]
    found = dict(forced_decoding(model, pairs))
    assert all(found[i].flows["attention"].shape == (3, 2 + i % 9) for i in range(70))
    assert all(
        torch.allclose(found[i].flows["attention"].sum(1), torch.ones(3, dtype=torch.float64)) for i in range(70)
    )


def test_a_sentence_that_is_too_long() -> None:
    model = model_with_attention("identity")
    with pytest.raises(InputError, match="sentence 2: its target has 1,025 tokens, but the model takes 1,024"):
        list(forced_decoding(model, [pair(model, 1, 1), pair(model, 3, 1024)]))
