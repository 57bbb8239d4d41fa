"""The symbols of fairseq's own, which are in every dictionary and not in its file."""

from __future__ import annotations

from collections.abc import Collection

from .errors import InputError

UNKNOWN = "<unk>"
"""A word that the dictionary does not hold."""
END = "</s>"
"""Of a sentence, or of a line."""
SYMBOLS = ("<s>", "<pad>", END)
"""Those that no text may hold: they would be read as the ends of lines and as padding."""
SPECIAL_SYMBOLS = len(SYMBOLS) + 1
"""How many there are, the unknown word among them."""


def check_symbols(place: str, tokens: Collection[str]) -> None:
    """Raises InputError for a token that fairseq would take for a symbol of its own; ``place`` says where it is."""
    for symbol in SYMBOLS:
        if symbol in tokens:
            raise InputError(f"{place}: '{symbol}' is a symbol of fairseq's own: write it differently")
