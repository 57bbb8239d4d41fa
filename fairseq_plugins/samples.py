"""Which of many examples are shown. Standard library only."""

from __future__ import annotations


def spread(count: int, number: int) -> list[int]:
    """``number`` indices, spread evenly over ``count`` examples; all of them where there are fewer."""
    number = min(count, number)
    return [place * count // number for place in range(number)]
