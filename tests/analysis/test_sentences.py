"""Tests of the sentences that analyses read."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fairseq_plugins.analysis.sentences import add_model_arguments, chosen, joined, read_pairs, read_sources
from fairseq_plugins.corpora.codec import Word
from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.decoding.translation import Sentence, TranslationModel
from fairseq_plugins.errors import InputError

from .models import model_with_attention


def test_subwords_are_joined_into_words() -> None:
    source = Sentence(["a@@", "b", "c"], [Word("ab", 0, 2), Word("c", 2, 3)])
    target = Sentence(["x", "y@@", "z"], [Word("x", 0, 1), Word("yz", 1, 3)])
    weights = torch.tensor(
        [[0.1, 0.2, 0.3, 0.4], [0.4, 0.2, 0.2, 0.2], [0.0, 0.2, 0.8, 0.0], [0.0, 0.0, 0.0, 1.0]], dtype=torch.float64
    )
    expected = torch.tensor([[0.3, 0.3, 0.4], [0.4, 0.5, 0.1], [0.0, 0.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(joined(weights, source, target), expected)


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
