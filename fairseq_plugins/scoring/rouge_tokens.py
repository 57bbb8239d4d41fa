"""What ROUGE counts: rouge-score's words of ASCII letters, as English has them, or those of any language."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence

import regex

from ..languages import language_code

ENGLISH, UNICODE = "rouge-score", "unicode"
TOKENIZERS = {ENGLISH: "lc,a-z0-9", UNICODE: "nfc,lc,unicode-words,unspaced-characters"}
"""Name → what a signature says of it.

``rouge-score``: lower-cased runs of a-z and 0-9; everything else is dropped, letters with accents too. ``unicode``:
composed (NFC) and lower-cased runs of letters and digits with their combining marks, and each character by itself,
with its marks (a grapheme cluster), in scripts that are written without spaces.
"""
_ASCII_SHARE = 0.9

# Chinese and Japanese, Thai, Lao, Khmer, Burmese. Other letters among them are words as everywhere.
_UNSPACED = "".join(rf"\p{{scx={script}}}" for script in ("Han", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr"))
# The two joiners (U+200C, U+200D) say how letters of one word are written.
_TOKEN = regex.compile(
    rf"(?=[[\p{{L}}\p{{N}}]&&[{_UNSPACED}]])\X"
    rf"|[[\p{{L}}\p{{N}}]--[{_UNSPACED}]][[\p{{L}}\p{{N}}\p{{M}}\u200c\u200d]--[{_UNSPACED}]]*",
    flags=regex.VERSION1,
)


def unicode_tokens(text: str) -> list[str]:
    """A text's words and characters, as ``unicode`` has them."""
    tokens: list[str] = _TOKEN.findall(unicodedata.normalize("NFC", text).lower())
    return tokens


class UnicodeTokenizer:
    """``unicode`` as rouge-score wants a tokenizer."""

    def __init__(self, stem: Callable[[str], str] | None = None) -> None:
        """Takes the stemmer.

        Args:
            stem: of words of more than three characters, as rouge-score does it
        """
        self._stem = stem

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text."""
        tokens = unicode_tokens(text)
        return tokens if self._stem is None else [self._stem(t) if len(t) > 3 else t for t in tokens]


def choose_tokenizer(language: str, references: Iterable[Sequence[str]]) -> tuple[str, str]:
    """The one of :data:`TOKENIZERS` by which ROUGE compares texts, and why.

    Args:
        language: the name of the target's side, such as ``de``; it need be none of a language
        references: one or several lists of texts
    """
    code = language_code(language)
    if code is not None:
        return (ENGLISH if code == "en" else UNICODE), f"the target language is '{language}'"
    unknown = f"'{language}' is no language" if language else "the target language is not known"
    if _are_mostly_ascii(references):
        return ENGLISH, f"{unknown}, and nine tenths of the references' letters or more are ASCII"
    return UNICODE, f"{unknown}, and less than nine tenths of the references' letters are ASCII"


def _are_mostly_ascii(references: Iterable[Sequence[str]]) -> bool:
    # Composed, since a decomposed ü has an ASCII letter.
    texts = (unicodedata.normalize("NFC", text) for lines in references for text in lines)
    letters = [character.isascii() for text in texts for character in text if character.isalpha()]
    return sum(letters) >= _ASCII_SHARE * len(letters)
