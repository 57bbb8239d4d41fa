"""Exact match and character error rate: of pronunciations, word forms, transliterations and other short outputs.

Texts are compared composed (NFC), each run of white space as one space. Of several references the closest counts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from importlib.metadata import version

import numpy as np

from .metrics import Column, Outputs, References, SampledMetric, check_lengths, register_metric

_TEXT = "norm:nfc|spaces:one"


class OfWholeTexts(SampledMetric):
    """A share in percent: two numbers of each sentence, summed and divided."""

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        percent: np.ndarray = 100 * summed[:1] / max(summed[1], 1)
        return percent

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        case = "lc" if references.lowercase else "mixed"
        return "|".join([super().signature(column, references, bootstrap), f"case:{case}", _TEXT])


class ExactMatch(OfWholeTexts):
    """How many outputs are one of their references."""

    name = "exact_match"
    label = "exact match"
    columns = (Column("exact_match", "exact match (%)", largest=100),)

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        """(N, 2): whether it is right, and 1."""
        rows = _rows(outputs, references)
        return np.array([[output in targets, 1] for output, targets in rows], dtype=float).reshape(-1, 2)


class CharacterErrorRate(OfWholeTexts):
    """Characters to insert, delete or replace (Levenshtein, 1966), by the references' characters."""

    name = "cer"
    label = "character error rate"
    columns = (Column("cer", "CER (%)", higher_is_better=False),)

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        """(N, 2): edits to the closest reference, and its characters."""
        # Not at the head of the file: only this one needs it.
        from rapidfuzz.distance import Levenshtein

        edits = [
            min((Levenshtein.distance(output, target), -len(target)) for target in targets)
            for output, targets in _rows(outputs, references)
        ]
        return np.array([[distance, -negative] for distance, negative in edits], dtype=float).reshape(-1, 2)

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        return f"{super().signature(column, references, bootstrap)}|rapidfuzz:{version('rapidfuzz')}"


def _rows(outputs: Outputs, references: References) -> Iterator[tuple[str, list[str]]]:
    """Each output with its references, as they are compared.

    Raises:
        ValueError: not one output for each reference.
    """

    def compared(text: str) -> str:
        composed = " ".join(unicodedata.normalize("NFC", text).split())
        return composed.lower() if references.lowercase else composed

    check_lengths(outputs.text, references.text)
    for output, *targets in zip(outputs.text, *references.text, strict=True):
        yield compared(output), [compared(target) for target in targets]


register_metric(ExactMatch())
register_metric(CharacterErrorRate())
