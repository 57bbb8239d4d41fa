"""Text ↔ what fairseq reads of it: a preparation's steps, applied to new text and undone in what a model predicts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from fairseq_plugins.corpora.subwords import SubwordModel
from fairseq_plugins.corpora.tokenizers import Tokenizer
from fairseq_plugins.errors import InputError
from fairseq_plugins.symbols import UNKNOWN


def list_of_texts(function: str, texts: Iterable[str]) -> list[str]:
    """The texts that somebody gave a function of that name.

    Raises:
        TypeError: they are one text, whose letters would be taken for texts, or one of them is no text.
        InputError: one of them has half a character.
    """
    if isinstance(texts, str):
        raise TypeError(f"{function} takes a list of texts: {function}([{texts!r}])")
    listed = list(texts)
    for index, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"{function}: text {index} of the list (from 0) is {text!r}, not a text (str)")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(
                f"{function}: text {index} of the list (from 0) has half a character, {text[error.start]!a}, without "
                f"its other half; remove it"
            ) from None
    return listed


class Word(NamedTuple):
    """A word and the pieces, ``start`` to ``stop`` - 1, that make it up."""

    text: str
    start: int
    stop: int


class Codec:
    """One side of a corpus: text ↔ tokens (``tokens/``) ↔ pieces (``bpe/``, and fairseq's dictionary).

    Tokens and pieces are separated by single spaces. Without BPE the tokens are the pieces, but for the unknown words.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        load_subwords: Callable[[], SubwordModel] | None = None,
        unknown_words: Sequence[str] = (),
    ) -> None:
        """
        Args:
            tokenizer: text → tokens.
            load_subwords: loads the BPE, when it is first needed; None where there is none.
            unknown_words: tokens by which the text itself says that a word is unknown. Without BPE they are fairseq's
                ``<unk>`` to the model. Where a model predicts ``<unk>`` the first of them is in the tokens.
        """
        self._tokenizer, self._load_subwords = tokenizer, load_subwords
        self._unknown_words = tuple(unknown_words)

    def tokenize(self, text: str) -> str:
        """Text → tokens.

        Raises:
            TypeError: it is no text. Tokenizers would make one of it.
        """
        if not isinstance(text, str):
            raise TypeError(f"a text (str) was expected, not {text!r}")
        return self._tokenizer(text)

    def encode(self, text: str) -> str:
        """Text → the pieces that fairseq reads."""
        return self.encode_tokens(self.tokenize(text))

    def encode_tokens(self, tokens: str) -> str:
        """Tokens → pieces."""
        return self.to_unknown(tokens) if self._subwords is None else self._subwords.encode(tokens)

    def decode(self, pieces: str) -> str:
        """Pieces, as a model predicts them → tokens."""
        if self._subwords is not None:
            # A model may put spaces where no text has them.
            pieces = " ".join(self._subwords.decode(pieces).split())
        return self.from_unknown(pieces)

    def detokenize(self, tokens: str) -> str:
        """Tokens → text: attached punctuation, unescaped characters."""
        return self._tokenizer.detokenize(tokens)

    def join_pieces(self, pieces: Sequence[str]) -> list[Word]:
        """The words that pieces make up, and where each of them is."""
        if self._subwords is None:
            return [Word(piece, index, index + 1) for index, piece in enumerate(pieces)]
        starts = [index for index in range(len(pieces)) if self._subwords.starts_word(pieces, index)]
        ends = [*starts[1:], len(pieces)] if starts else []
        return [
            Word(self._subwords.decode(" ".join(pieces[start:stop])), start, stop)
            for start, stop in zip(starts, ends, strict=True)
        ]

    def to_unknown(self, tokens: str) -> str:
        """Tokens with fairseq's ``<unk>`` for every one of the unknown words."""
        if not self._unknown_words:
            return tokens
        return " ".join(UNKNOWN if token in self._unknown_words else token for token in tokens.split(" "))

    def from_unknown(self, tokens: str) -> str:
        """Tokens with the first of the unknown words for every ``<unk>``, as the text would say it."""
        if not self._unknown_words:
            return tokens
        return " ".join(self._unknown_words[0] if token == UNKNOWN else token for token in tokens.split(" "))

    @functools.cached_property
    def _subwords(self) -> SubwordModel | None:
        return None if self._load_subwords is None else self._load_subwords()
