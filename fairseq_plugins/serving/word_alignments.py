"""Where the words of a sentence are in its text, and where the model looked when it wrote them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..corpora.codec import Word
from ..exported.graphs import Array
from ..exported.translation import ExportedTranslationModel, TranslatedText

_GAP = 8
"""Characters between two words at most, besides words that were not found."""


class SplitText(NamedTuple):
    """A text cut at its words.

    Attributes:
        segments: what is between words, and words, in turn: those with odd indices are words.
        words: which of the words that were looked for are among them.
    """

    segments: list[str]
    words: list[int]


def split_at_words(text: str, words: Sequence[str]) -> SplitText:
    """Finds words in a text, one after the other. A model's tokens may be without capitals, or not be in the text."""
    segments, indices = [], []
    position = missed = 0
    for index, word in enumerate(words):
        stop = position + missed + len(word) + _GAP
        if not word or not (match := re.compile(re.escape(word), re.IGNORECASE).search(text, position, stop)):
            missed += len(word)
            continue
        segments += [text[position : match.start()], match[0]]
        indices.append(index)
        position, missed = match.end(), 0
    return SplitText([*segments, text[position:]], indices)


def word_attention(attention: Array, target: Sequence[Word], source: Sequence[Word]) -> Array:
    """The attention of words: summed over a source word's pieces, and the mean of a target word's.

    Args:
        attention: of pieces, (T + 1, S); the end comes last on both sides, and counts for no word.
        target, source: the words, and which pieces they are.
    """
    rows = np.array([attention[word.start : word.stop].mean(0) for word in target], np.float64)
    sums = np.pad(rows.cumsum(axis=1), ((0, 0), (1, 0)))
    return sums[:, [word.stop for word in source]] - sums[:, [word.start for word in source]]


def details(model: ExportedTranslationModel, sentence: str, translated: TranslatedText) -> dict[str, Any]:
    """What the page shows of a sentence, as JSON can hold it.

    ``segments`` are those of :class:`SplitText`, ``unknown`` the indices of words that the model never saw; in each of
    the ``translations`` ``attention`` has a row for each word, and in it a number for each word of the sentence.
    """
    preparation = model.preparation
    source_words = preparation.join_pieces(preparation.source_lang, translated.source)
    source = split_at_words(sentence, _as_read(source_words))
    never_seen = set(model.unknown_words(sentence))
    translations = []
    for translation in translated.translations:
        target_words = preparation.join_pieces(preparation.target_lang, translation.pieces)
        target = split_at_words(translation.text, _as_read(target_words))
        weights = np.zeros((len(target_words), len(source_words)))
        if translation.attention is not None and weights.size:
            weights = word_attention(translation.attention, target_words, source_words)
        translations.append(
            {
                "text": translation.text,
                "score": round(float(translation.score), 3),
                "segments": target.segments,
                "attention": weights[np.ix_(target.words, source.words)].round(3).tolist(),
            }
        )
    return {
        "segments": source.segments,
        "unknown": [place for place, index in enumerate(source.words) if source_words[index].text in never_seen],
        "cut": translated.is_cut,
        "translations": translations,
    }


def _as_read(words: Sequence[Word]) -> list[str]:
    # Moses writes an apostrophe as &apos;.
    return [html.unescape(word.text) for word in words]
