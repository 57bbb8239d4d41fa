"""Tests of forced decoding: attention of real tokens alone, whatever is in the same batch."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fairseq_plugins.analysis.forced_decoding import (
    add_model_arguments,
    chosen,
    forced_decoding,
    joined,
    read_pairs,
    read_sources,
)
from fairseq_plugins.corpora.codec import Word
from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.decoding.translation import Sentence, TranslationModel
from fairseq_plugins.errors import InputError

from .models import model_of_architecture, model_with_attention, pair

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


def test_subwords_are_joined_into_words() -> None:
    source = Sentence(["a@@", "b", "c"], [Word("ab", 0, 2), Word("c", 2, 3)])
    target = Sentence(["x", "y@@", "z"], [Word("x", 0, 1), Word("yz", 1, 3)])
    weights = torch.tensor(
        [[0.1, 0.2, 0.3, 0.4], [0.4, 0.2, 0.2, 0.2], [0.0, 0.2, 0.8, 0.0], [0.0, 0.0, 0.0, 1.0]], dtype=torch.float64
    )
    expected = torch.tensor([[0.3, 0.3, 0.4], [0.4, 0.5, 0.1], [0.0, 0.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(joined(weights, source, target), expected)


def test_a_sentence_that_is_too_long() -> None:
    model = model_with_attention("identity")
    with pytest.raises(InputError, match="sentence 2: its target has 1,025 tokens, but the model takes 1,024"):
        list(forced_decoding(model, [pair(model, 1, 1), pair(model, 3, 1024)]))


def parsed(*arguments: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    return parser.parse_args(["checkpoint.pt", *map(str, arguments)])


@pytest.fixture
def model(tmp_path: Path) -> TranslationModel:
    """A model beside a prepared set ``test`` of two pairs."""
    made = model_with_attention("identity")
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "test.de").write_text("w1 w2\nw3\n")
    (tmp_path / "tokens" / "test.en").write_text("w4\nw5 w6 w7\n")
    PairsPreparation("de", "en", bpe="none").save(tmp_path)
    return replace(made, data=PreparedData(tmp_path, PairsPreparation.load(tmp_path)))


def test_pairs_of_a_set_and_of_files(model: TranslationModel, tmp_path: Path) -> None:
    assert [(s.pieces, t.pieces) for s, t in read_pairs(model, parsed())] == [
        (["w1", "w2"], ["w4"]),
        (["w3"], ["w5", "w6", "w7"]),
    ]
    (tmp_path / "hypotheses").write_text("w8\n\n")
    assert [t.pieces for _, t in read_pairs(model, parsed("--target", tmp_path / "hypotheses"))] == [["w8"], []]
    (tmp_path / "source").write_text("w9 w1\n")
    assert [s.pieces for s in read_sources(model, parsed("--source", tmp_path / "source"))] == [["w9", "w1"]]


def test_text_that_cannot_be_used(model: TranslationModel, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--source needs --target"):
        read_pairs(model, parsed("--source", tmp_path / "tokens" / "test.de"))
    with pytest.raises(InputError, match=r"valid\.de: no such file"):
        read_pairs(model, parsed("--subset", "valid"))
    empty = tmp_path / "empty"
    empty.write_text("")
    with pytest.raises(InputError, match="empty: the file is empty"):
        read_sources(model, parsed("--source", empty))
    (tmp_path / "one").write_text("w1\n")
    with pytest.raises(InputError, match="one: 1 target sentences, but 2 source sentences"):
        read_pairs(model, parsed("--target", tmp_path / "one"))


def test_chosen_sentences() -> None:
    assert chosen(["a", "b", "c"], [3, 1]) == ["c", "a"]
    for number in 0, 4:
        with pytest.raises(InputError, match=f"there is no sentence {number}; there are 3"):
            chosen(["a", "b", "c"], [number])


def test_a_file_that_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "empty.pt").write_text("")
    with pytest.raises(InputError, match="truncated, or not a checkpoint"):
        TranslationModel.load([tmp_path / "empty.pt"])


def test_words_are_shown_as_they_are_read() -> None:
    made = model_with_attention("identity")
    preparation = PairsPreparation("de", "en", bpe="none", tokenizer="moses")
    moses = replace(made, data=PreparedData(Path("data"), preparation))
    assert [word.text for word in moses.target("it &apos;s a &lt;b&gt;").words] == ["it", "'s", "a", "<b>"]
    assert [word.text for word in made.target("it &apos;s").words] == ["it", "&apos;s"]
