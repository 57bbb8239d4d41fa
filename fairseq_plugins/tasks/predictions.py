"""Lines that say what a model makes of each example, which ``experiments/predictions.py`` reads.

    C-<number>\t<what is predicted>\t<numbers>

The number is that of the example in its set, from 0; what the others are is said by each task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def print_prediction(number: int, predicted: str, numbers: Iterable[float]) -> None:
    """Writes one line."""
    print(f"C-{number}\t{predicted}\t{' '.join(f'{value:.6f}' for value in numbers)}")


def print_predictions(numbers: Sequence[int], predicted: Iterable[str], values: Iterable[Iterable[float]]) -> None:
    """Writes a batch."""
    for number, text, row in zip(numbers, predicted, values, strict=True):
        print_prediction(number, text, row)
