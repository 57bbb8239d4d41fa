"""Copy memory: the mean cross-entropy of the copied symbols in nats, ln 8 = 2.079 for guessing, and how many are right.

An output is the ten symbols, a reference the ten that were to be copied.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .metrics import Column, Metric, Outputs, References, register_metric


class CopyMemory(Metric):
    """Cross-entropy (DilatedRNN's Figure 3) and accuracy of symbols."""

    name: ClassVar[str] = "copy_memory"
    label: ClassVar[str] = "cross-entropy of copied symbols"
    columns = (
        Column("copy_cross_entropy", "cross-entropy (nats)", "cross-entropy", False, ".3f", paper="cross_entropy"),
        Column("copy_accuracy", "symbols right (%)", paper="symbols", largest=100),
    )
    decoding: ClassVar[str] = "classification"

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        """(N, 3): cross-entropies summed, right symbols, symbols."""
        numbers = self.log_probabilities(outputs)
        rows = zip(numbers, outputs.tokens, references.tokens[0], strict=True)
        return np.array([[-sum(row), *_right(predicted.split(), wanted.split())] for row, predicted, wanted in rows])

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        values = {"copy_cross_entropy": summed[0] / summed[2], "copy_accuracy": 100 * summed[1] / summed[2]}
        return np.array([values[column.key] for column in self.columns])


def _right(predicted: list[str], wanted: list[str]) -> tuple[int, int]:
    return sum(a == b for a, b in zip(predicted, wanted, strict=True)), len(wanted)


register_metric(CopyMemory())
