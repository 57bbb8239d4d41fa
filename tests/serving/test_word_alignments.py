"""Words are found in their text, and the attention of pieces becomes that of words."""

from __future__ import annotations

import numpy as np
import pytest

from fairseq_plugins.corpora.codec import Word
from fairseq_plugins.serving.word_alignments import details, split_at_words, word_attention
from tests.serving.fakes import FakeModel


@pytest.mark.parametrize(
    ("text", "words", "segments", "indices"),
    [
        ("", [], [""], []),
        ("Ein Hund.", ["Ein", "Hund", "."], ["", "Ein", " ", "Hund", "", ".", ""], [0, 1, 2]),
        ("Ein Hund", ["ein", "hund"], ["", "Ein", " ", "Hund", ""], [0, 1]),
        ("a  b", ["a", "<unk>", "b"], ["", "a", "  ", "b", ""], [0, 2]),
        ("der der", ["der", "der"], ["", "der", " ", "der", ""], [0, 1]),
        ("İa b", ["i", "b"], ["", "İ", "a ", "b", ""], [0, 1]),
        ("x (a+b)", ["x", "(a+b)", ""], ["", "x", " ", "(a+b)", ""], [0, 1]),
        ("a" + " " * 30 + "a b", ["q", "a", "b"], ["", "a", " " * 30 + "a b"], [1]),
    ],
)
def test_words_are_found_one_after_the_other(
    text: str, words: list[str], segments: list[str], indices: list[int]
) -> None:
    found = split_at_words(text, words)
    assert (found.segments, found.words) == (segments, indices)
    assert "".join(found.segments) == text


def test_attention_of_words() -> None:
    attention = np.array([[0.5, 0.25, 0.125, 0.125], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 1.0, 0.0], [0, 0, 0, 1]])
    target, source = [Word("ab", 0, 2), Word("c", 2, 3)], [Word("x", 0, 1), Word("yz", 1, 3)]
    np.testing.assert_allclose(word_attention(attention, target, source), [[0.375, 0.4375], [0.0, 1.0]])


def test_details_of_a_sentence() -> None:
    model = FakeModel()
    sentence = "ein zzz Hund"
    [translated] = model.translations([sentence], count=2, need_attention=True)
    found = details(model, sentence, translated)  # type: ignore[arg-type]
    assert found["segments"] == ["", "ein", " ", "zzz", " ", "Hund", ""]
    assert found["unknown"] == [1] and not found["cut"]
    first, second = found["translations"]
    assert first == {
        "text": "HUND ZZZ EIN",
        "score": -0.5,
        "segments": ["", "HUND", " ", "ZZZ", " ", "EIN", ""],
        "attention": [[0.1, 0.1, 0.9], [0.1, 0.9, 0.1], [0.9, 0.1, 0.1]],
    }
    assert second["text"] == "HUND1 ZZZ1 EIN1"
