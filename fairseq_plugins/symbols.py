"""The symbols of fairseq's own, which are in every dictionary and not in its file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from .errors import InputError

UNKNOWN = "<unk>"
"""A word that the dictionary does not hold."""
END = "</s>"
"""Of a sentence, or of a line."""
SYMBOLS = ("<s>", "<pad>", END)
"""Those that no text may hold: they would be read as the ends of lines and as padding."""
SPECIAL_SYMBOLS = len(SYMBOLS) + 1
"""How many there are, the unknown word among them."""

_PADDING_WORD = re.compile(r"madeupword\d{4,}")


def check_symbols(place: str, tokens: Collection[str]) -> None:
    """Raises InputError for a token that fairseq would take for a symbol of its own; ``place`` says where it is."""
    for symbol in SYMBOLS:
        if symbol in tokens:
            raise InputError(f"{place}: '{symbol}' is a symbol of fairseq's own: write it differently")


def symbols_as_unknown(pieces: str) -> str:
    """Pieces of new text, separated by single spaces, with ``<unk>`` for those that are a symbol of fairseq's own."""
    return " ".join(UNKNOWN if piece in SYMBOLS else piece for piece in pieces.split(" "))


def padding_words(entries: Iterable[tuple[str, int]]) -> list[int]:
    """Which symbols of a dictionary fairseq's preprocessing has added to make its size a multiple: no text has them.

    Args:
        entries: symbols and their counts, in the dictionary's order.

    Returns:
        their places in that order.
    """
    return [place for place, (symbol, count) in enumerate(entries) if count == 0 and _PADDING_WORD.fullmatch(symbol)]
