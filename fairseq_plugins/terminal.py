"""Tables for the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same keys as aligned columns: text to the left, numbers to the right, ``-`` for None."""
    # Not at the head of the file: help does without.
    from tabulate import tabulate

    columns = list(rows[0])
    sides = ["right" if any(isinstance(row[name], (int, float)) for row in rows) else "left" for name in columns]
    cells = [[_isolated(cell(row[name])) for name in columns] for row in rows]
    # The names are a row as any: as headers they would get a margin.
    shown = tabulate([columns, *cells], tablefmt="plain", colalign=sides, disable_numparse=True)
    return "\n".join(line.rstrip() for line in shown.splitlines())


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
