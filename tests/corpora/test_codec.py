"""Text to what fairseq reads, and back: with and without BPE, with words that are unknown."""

from __future__ import annotations

import functools
import pickle
import random
import re
from pathlib import Path

import pytest
from fairseq.data.data_utils import post_process
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairseq_plugins.corpora.codec import Codec, Word, list_of_texts
from fairseq_plugins.corpora.gigaword import UNKNOWN_WORDS
from fairseq_plugins.corpora.subwords import SUBWORD_MODELS
from fairseq_plugins.corpora.tokenizers import Tokenizer
from fairseq_plugins.errors import InputError

SIZES = {"sentencepiece": 120, "subword-nmt": 60}
TEXT = [
    "He's at the U.S. border, isn't he?",
    "Police kill 17 & so on (50%).",
    'The unk said: "UNK and unk."',
    "",
    "  Spaces\u00a0and\ttabs  ",
]


@pytest.fixture(scope="module", params=[*SIZES, "none"])
def bpe(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def load_subwords(bpe: str, tmp_path_factory: pytest.TempPathFactory) -> functools.partial | None:
    if bpe == "none":
        return None
    path = tmp_path_factory.mktemp("subwords") / "model"
    generator = random.Random(1)
    words = ["".join(generator.choices("abdeghilnorstu", k=generator.randint(1, 8))) for _ in range(60)]
    lines = [" ".join(generator.choices([*words, "unk", "UNK", "."], k=8)) for _ in range(200)]
    SUBWORD_MODELS[bpe].learn([*lines, *TEXT * 3], SIZES[bpe], path)
    return functools.partial(SUBWORD_MODELS[bpe], path)


@pytest.fixture(scope="module")
def moses(load_subwords: functools.partial | None) -> Codec:
    return Codec(Tokenizer("en", "moses", lowercase=True), load_subwords)


@pytest.fixture(scope="module")
def gigaword(load_subwords: functools.partial | None) -> Codec:
    """Tokens are given, some of which say that a word is unknown."""
    return Codec(Tokenizer("title"), load_subwords, UNKNOWN_WORDS)


def test_decoding_undoes_encoding(moses: Codec) -> None:
    for text in TEXT:
        tokens = moses.decode(moses.encode(text))
        assert tokens == moses.tokenize(text)
        assert moses.detokenize(tokens) == " ".join(text.split()).lower()


def test_decoding_undoes_encoding_with_unknown_words(gigaword: Codec, bpe: str) -> None:
    tokens = "police kill unk , UNK and <unk> ."
    pieces = gigaword.encode(tokens)
    if bpe == "none":
        assert pieces == "police kill <unk> , <unk> and <unk> ."
        # All of them are one word to the model.
        assert gigaword.decode(pieces) == "police kill unk , unk and unk ."
    else:
        # They are words like others; the one that stands for itself in fairseq's dictionary is told as any other.
        assert gigaword.decode(pieces) == "police kill unk , UNK and unk ."
    for line in ("", "police kill unk", "unk"):
        assert gigaword.decode(gigaword.encode(line)) == line


def test_a_model_that_predicts_the_unknown_word(gigaword: Codec, moses: Codec, bpe: str) -> None:
    pieces = "\u2581he \u2581 <unk> \u2581at" if bpe == "sentencepiece" else "he <unk> at"
    assert gigaword.decode(pieces) == "he unk at"
    assert moses.decode(pieces) == "he <unk> at"


def pieces_of(codec: Codec) -> list[str]:
    return sorted({piece for text in TEXT for piece in codec.encode(text).split()} | {"<unk>"})


@pytest.mark.system
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choices=st.lists(st.integers(0, 10_000), max_size=12))
def test_any_prediction_is_decoded_as_fairseq_does(moses: Codec, gigaword: Codec, bpe: str, choices: list[int]) -> None:
    known = pieces_of(moses)
    pieces = " ".join(known[choice % len(known)] for choice in choices)
    symbol = {"sentencepiece": "sentencepiece", "subword-nmt": "@@ ", "none": None}[bpe]
    # fairseq leaves the spaces where they are; who scores tokens splits at any number of them.
    expected = " ".join(post_process(pieces, symbol).split())
    assert moses.decode(pieces) == expected
    assert gigaword.decode(pieces) == gigaword.from_unknown(expected)


def test_words_of_pieces(moses: Codec, bpe: str) -> None:
    for text in TEXT:
        pieces = moses.encode(text).split()
        words = moses.join_pieces(pieces)
        assert [word.text for word in words] == moses.tokenize(text).split()
        assert [position for word in words for position in range(word.start, word.stop)] == list(range(len(pieces)))
    assert moses.join_pieces(["a", "b"]) == (
        [Word("ab", 0, 2)] if bpe == "sentencepiece" else [("a", 0, 1), ("b", 1, 2)]
    )


def test_a_codec_goes_to_another_process(moses: Codec, gigaword: Codec) -> None:
    for codec in moses, gigaword:
        assert [pickle.loads(pickle.dumps(codec)).encode(text) for text in TEXT] == [
            codec.encode(text) for text in TEXT
        ]


def test_the_subword_model_is_read_when_it_is_needed(tmp_path: Path) -> None:
    codec = Codec(Tokenizer("en"), functools.partial(SUBWORD_MODELS["sentencepiece"], tmp_path / "absent"))
    assert codec.tokenize(" a  b") == "a b"
    with pytest.raises(InputError, match="absent: missing"):
        codec.encode("a b")


NO_TEXT = [None, float("nan"), b"a word", 5, ["a", "word"]]


@pytest.mark.parametrize("value", NO_TEXT, ids=repr)
def test_what_is_no_text_has_no_tokens(value: object) -> None:
    """Moses' tokenizer would make text of it: the word "None"."""
    for kind in "moses", "none":
        codec = Codec(Tokenizer("en", kind))
        for method in codec.tokenize, codec.encode:
            with pytest.raises(TypeError, match=rf"^a text \(str\) was expected, not {re.escape(repr(value))}$"):
                method(value)


@pytest.mark.parametrize("value", NO_TEXT, ids=repr)
def test_what_is_no_text_is_named_by_its_index(value: object) -> None:
    with pytest.raises(TypeError, match=rf"^translate: text 2 of the list \(from 0\) is {re.escape(repr(value))}, not"):
        list_of_texts("translate", ["a", "", value, None])


@pytest.mark.parametrize("value", ["a word", ""])
def test_one_text_is_no_list_of_its_letters(value: str) -> None:
    with pytest.raises(TypeError, match=rf"^translate takes a list of texts: translate\(\[{value!r}\]\)$"):
        list_of_texts("translate", value)


def test_lists_of_texts() -> None:
    assert list_of_texts("translate", ("a", "", "b")) == ["a", "", "b"]
    assert list_of_texts("translate", (text for text in "ab")) == ["a", "b"], "read once"
    assert list_of_texts("translate", []) == []


def test_half_a_character_is_no_text() -> None:
    with pytest.raises(InputError, match=r"predict: text 1 of the list \(from 0\) has half a character"):
        list_of_texts("predict", ["ok \U0001f600", "no \ud83d"])
