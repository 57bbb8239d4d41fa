"""Accuracy: the share of examples whose class is right, and McNemar's test of two systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from .metrics import Column, Metric, Outputs, References, register_metric
from .predictions import read_predictions
from .significance import SAMPLES, SEED, Comparison


class Accuracy(Metric):
    """The share of right classes, in percent."""

    name: ClassVar[str] = "accuracy"
    label: ClassVar[str] = "accuracy"
    columns = (Column("accuracy", "accuracy", paper="accuracy", largest=100),)
    decoding: ClassVar[str] = "classification"
    significance_test: ClassVar[str] = "McNemar's exact test"

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        """(N, 2): whether it is right, and 1.

        Raises:
            ValueError: not one output for each reference.
        """
        pairs = zip(outputs.tokens, references.tokens[0], strict=True)
        return np.array([[predicted == label, 1] for predicted, label in pairs], dtype=float).reshape(-1, 2)

    def read(self, path: Path) -> Outputs:
        return read_predictions(path)

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        percent: np.ndarray = 100 * summed[:1] / summed[1]
        return percent

    def compare_statistics(
        self, baseline: np.ndarray, system: np.ndarray, *, samples: int = SAMPLES, seed: int = SEED
    ) -> dict[str, Comparison]:
        """As :meth:`.Metric.compare_statistics`, but the p-value is that of McNemar's exact test."""
        compared = super().compare_statistics(baseline, system, samples=samples, seed=seed)
        p_value = mcnemar(*(int(np.sum(a[:, 0] > b[:, 0])) for a, b in ((baseline, system), (system, baseline))))
        return {
            key: replace(one, p_value=p_value, signature=f"{one.signature}|test:mcnemar-exact")
            for key, one in compared.items()
        }


def mcnemar(first_alone: int, second_alone: int) -> float:
    """The exact two-sided p-value of McNemar's test (McNemar, 1947).

    Args:
        first_alone, second_alone: examples that one of two systems alone has right.
    """
    # Not at the head of the file: what asks for scores alone does not wait for it.
    from scipy.stats import binomtest

    count = first_alone + second_alone
    return float(binomtest(first_alone, count).pvalue) if count else 1.0


def confusion(predicted: list[str], labels: list[str], classes: list[str]) -> list[list[int]]:
    """How often each class (rows) was taken for each (columns)."""
    counts: dict[tuple[str, str], int] = {}
    for pair in zip(labels, predicted, strict=True):
        counts[pair] = counts.get(pair, 0) + 1
    return [[counts.get((label, taken), 0) for taken in classes] for label in classes]


register_metric(Accuracy())
