"""Files of word vectors in GloVe's or word2vec's format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .errors import InputError
from .files import read_lines


class WordVector(NamedTuple):
    """A line of such a file: its number, the word, and the numbers of its vector as they are written."""

    line: int
    word: str
    numbers: list[str]


def vectors_of_words(path: Path, size: int | None = None, said_by: str = "the first line's") -> Iterator[WordVector]:
    """The vectors of a file.

    A line is a word and its numbers, between spaces. Words may hold spaces, as some of GloVe's do, but for the first. A
    first line of two numbers, as word2vec's, is skipped.

    Args:
        path: of the file
        size: of a vector; None for that of the first
        said_by: what says the size, in errors

    Raises:
        InputError: the file cannot be read, or a vector is of another size.
    """
    is_first = True
    for number, line in enumerate(read_lines(path), 1):
        cells = line.rstrip().split(" ")
        if number == 1 and len(cells) == 2 and all(map(str.isdecimal, cells)):
            continue
        size = len(cells) - 1 if size is None else size
        if len(cells) <= size or (is_first and len(cells) > size + 1):
            raise InputError(f"{path}, line {number}: a vector of {len(cells) - 1} numbers, but {said_by} is {size}")
        is_first = False
        yield WordVector(number, " ".join(cells[:-size]), cells[-size:])
