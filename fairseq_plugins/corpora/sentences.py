"""A text's sentences: models translate one at a time, and people write paragraphs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from fairseq_plugins.languages import language_code

_SIGNS = str.maketrans(dict.fromkeys("∯∮ᓰᓱᓳᓴᓷᓸ⎋♨☝✂⌬ȸȹ☉☈☇☄♬♭☏ƪ♟♝", "♦"))
"""Signs that pysbd writes into a text for itself: with one of the text's own it finds no sentence any more."""
WINDOW = 2000
"""Characters that are looked at together: pysbd's time grows with the square of them for some texts."""


def split_sentences(text: str, language: str) -> list[str]:
    """A text as what is between its sentences, and its sentences, in turn: those with odd indices are sentences.

    Joined they are the text again. No sentence goes over the end of a line.

    Args:
        text: any.
        language: a name, or a code; where there are no rules for it those of English are taken.
    """
    parts, position = [], 0
    for start, stop in _spans(text, language):
        parts += [text[position:start], text[start:stop]]
        position = stop
    return [*parts, text[position:]]


@dataclass(frozen=True)
class LinesInSentences:
    """Lines of text as what a model translates one at a time, and the way back.

    Attributes:
        parts: of each line, as :func:`split_sentences` gives them
    """

    parts: Sequence[Sequence[str]]

    @classmethod
    def of(cls, lines: Sequence[str], language: str | None = None) -> LinesInSentences:
        """Lines that are paragraphs in a language, a name or a code; without one each of them is a sentence."""
        return cls([["", line, ""] if language is None else split_sentences(line, language) for line in lines])

    @property
    def sentences(self) -> list[str]:
        """All of them, in their order."""
        return [sentence for line in self.parts for sentence in line[1::2]]

    def place(self, sentence: int) -> str:
        """Where a sentence, counted from 0, stands: ``line 3``, or ``sentence 2 of line 3`` if it has several."""
        line = bisect_right(self._ends, sentence)
        place, count = f"line {line + 1}", len(self.parts[line]) // 2
        return place if count == 1 else f"sentence {sentence - self._ends[line] + count + 1} of {place}"

    @cached_property
    def _ends(self) -> list[int]:
        """The number of sentences up to each line and in it."""
        return list(accumulate(len(line) // 2 for line in self.parts))

    def join(self, translations: Sequence[str]) -> list[str]:
        """The translations of all sentences as lines, with what was between the sentences."""
        rest = iter(translations)
        return ["".join(next(rest) if number % 2 else part for number, part in enumerate(line)) for line in self.parts]


def _spans(text: str, language: str) -> Iterator[tuple[int, int]]:
    start_of_line = 0
    for line in text.splitlines(keepends=True):
        position = 0
        while line[position:].strip():
            window = line[position : position + WINDOW]
            spans = _spans_of_window(window, language)
            # What may go on behind the window is looked at again, with what follows it.
            if position + WINDOW < len(line) and len(spans) > 1:
                spans.pop()
            yield from ((start_of_line + position + start, start_of_line + position + stop) for start, stop in spans)
            position += spans[-1][1] if spans else len(window)
        start_of_line += len(line)


def _spans_of_window(window: str, language: str) -> list[tuple[int, int]]:
    # Not at the head of the file: the preparation of a corpus, which has a sentence a line, does without.
    from pysbd import Segmenter
    from pysbd.languages import LANGUAGE_CODES

    code = language_code(language)
    window = window.translate(_SIGNS)
    spans: list[tuple[int, int]] = []
    position = 0
    # A segmenter holds the text that it is at, and more than one thread may be here.
    for segment in Segmenter(language=code if code in LANGUAGE_CODES else "en", clean=False).segment(window):
        sentence = segment.strip()
        start = window.find(sentence, position)
        if start < 0 or window[position:start].strip():
            break  # it has changed the text
        if sentence:
            # A sign within a link ends no sentence; those of Chinese and Japanese end one without a space.
            goes_on = bool(spans) and start == position and window[start - 1] in ".?!"
            position = start + len(sentence)
            spans.append((spans.pop()[0] if goes_on else start, position))
    if not window[position:].strip():
        return spans
    start = len(window) - len(window.lstrip())
    return [(start, len(window.rstrip()))]
