"""Tables for the terminal. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same keys as aligned columns: text to the left, numbers to the right, ``-`` for None."""
    columns = list(rows[0])
    right = [any(isinstance(row[column], (int, float)) for row in rows) for column in columns]
    lines = [columns, *([cell(row[column]) for column in columns] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def cell(value: Any) -> str:
    """A number with two decimals, or with thousands apart; ``-`` for None."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
