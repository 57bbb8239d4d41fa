"""fairseq's dictionaries, read without it, and what goes into one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines
from fairseq_plugins.symbols import SPECIAL_SYMBOLS, SYMBOLS, UNKNOWN, padding_words
from fairseq_plugins.vector_files import vectors_of_words


def dictionary_symbols(path: str | Path) -> list[str]:
    """The symbols of a dictionary in fairseq's form, in its order, without fairseq's own. Raises what
    :func:`dictionary_entries` does."""
    return [symbol for symbol, _ in dictionary_entries(path)]


def dictionary_entries(path: str | Path) -> list[tuple[str, int]]:
    """The same, each with its count.

    Raises:
        InputError: there is no such file, or a line is not of that form.
    """
    entries = []
    for number, line in enumerate(read_lines(path), 1):
        symbol, space, count = line.rstrip().removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not space or not count.isdecimal():
            raise InputError(f"{path}, line {number}: a word and its count were expected; prepare the data again")
        entries.append((symbol, int(count)))
    return entries


def count_words(paths: Iterable[Path]) -> Counter[str]:
    """How often each word between spaces is in the files; the unknown word is none."""
    counts = Counter(token for path in paths for line in read_lines(path) for token in line.split())
    counts.pop(UNKNOWN, None)
    return counts


def by_count(entry: tuple[str, int]) -> tuple[int, str]:
    """The order of dictionaries: the most frequent words first, and those that are as frequent by their letters."""
    word, count = entry
    return -count, word


def word_entries(
    train: Sequence[Path], held_out: Sequence[Path], min_count: int, size: int | None, vectors: Path | None
) -> list[tuple[str, int]]:
    """The words of a dictionary, with their counts in the training texts.

    Args:
        train, held_out: files of tokens
        min_count: words that the training texts have less often are left out
        size: types at most, fairseq's four special symbols among them; None for all
        vectors: a file of word vectors: the words of held-out texts that it has are there too; None for none

    Raises:
        InputError: no word is left, or the file of vectors is none.
    """
    counts = count_words(train)
    words = [word for word, count in sorted(counts.items(), key=by_count) if count >= min_count]
    if size is not None:
        words = words[: size - SPECIAL_SYMBOLS]
    if vectors is not None:
        have_one = {vector.word for vector in vectors_of_words(vectors)}
        words += sorted(({*count_words(held_out)} - {*words}) & have_one)
    if not words:
        raise InputError(
            f"no word occurs {min_count:,} times in the training texts, so that all would be unknown: give a smaller "
            f"--min-count"
        )
    return [(word, counts[word]) for word in words]


class Dictionary:
    """Symbols and their numbers, as fairseq's own class has them.

    Args:
        entries: symbols and their counts, without fairseq's own four, which come first.

    Attributes:
        symbols: all of them.
        impossible: the numbers of those that no text has: padding, and words that pad the dictionary.
    """

    start, padding, end, unknown = range(SPECIAL_SYMBOLS)

    def __init__(self, entries: Sequence[tuple[str, int]]) -> None:
        self.symbols = [*SYMBOLS, UNKNOWN, *(symbol for symbol, _ in entries)]
        self.impossible = [self.padding, *(SPECIAL_SYMBOLS + place for place in padding_words(entries))]
        self._numbers = {symbol: number for number, symbol in reversed(list(enumerate(self.symbols)))}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dictionary:
        """Reads a dictionary in fairseq's form; see :func:`dictionary_entries`."""
        return cls(dictionary_entries(Path(path)))

    def __len__(self) -> int:
        return len(self.symbols)

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._numbers

    def encode(self, pieces: str) -> list[int]:
        """The numbers of symbols between spaces, and of the end of the sentence."""
        return [*(self._numbers.get(piece, self.unknown) for piece in pieces.split()), self.end]
