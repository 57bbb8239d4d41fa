"""ROUGE-L of short answers, by the rules of the scripts for image captions (``pycocoevalcap``)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

BETA = 1.2
"""By how much recall counts more than precision."""


def longest_common_subsequence(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Its length (Hyyrö 2004: a bit for each word of ``first``)."""
    places: dict[Hashable, int] = {}
    for index, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << index
    row = (1 << len(first)) - 1
    for word in second:
        common = row & places.get(word, 0)
        row = (row + common) | (row - common)
    return len(first) - (row & (1 << len(first)) - 1).bit_count()


def f_measure(precision: float, recall: float) -> float:
    """ROUGE-L's F of precision and recall, by :data:`BETA`."""
    if not precision or not recall:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def rouge_l(answer: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """ROUGE-L between 0 and 1: of several references the highest precision and the highest recall count."""
    common = [longest_common_subsequence(reference, answer) for reference in references]
    recalls = [count / len(reference) for count, reference in zip(common, references, strict=True) if reference]
    return f_measure(max(common) / len(answer), max(recalls, default=0)) if answer else 0.0
