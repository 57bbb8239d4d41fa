"""Tables for the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same keys as aligned columns: text to the left, numbers to the right, ``-`` for None."""
    columns = []
    for name in rows[0]:
        shown = [_isolated(text) for text in (name, *(cell(row[name]) for row in rows))]
        width = max(map(display_width, shown))
        is_number = any(isinstance(row[name], (int, float)) for row in rows)
        spaces = [" " * (width - display_width(text)) for text in shown]
        columns.append([space + text if is_number else text + space for text, space in zip(shown, spaces, strict=True)])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def display_width(text: str) -> int:
    """How many places of a terminal a text takes: two for a Chinese character, none for an accent of its own."""
    seen = [character for character in text if unicodedata.category(character) not in ("Mn", "Me", "Cf")]
    return len(seen) + sum(unicodedata.east_asian_width(character) in ("W", "F") for character in seen)


def _isolated(text: str) -> str:
    """A text that is written from right to left between marks, so that what stands beside it keeps its place."""
    return f"\u2068{text}\u2069" if any(unicodedata.bidirectional(one) in ("R", "AL") for one in text) else text


def cell(value: Any) -> str:
    """A number with two decimals, or with thousands apart; ``-`` for None."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
