"""Lines that say what a model makes of each example, which ``experiments/predictions.py`` reads.

    C-<number>\t<what is predicted>\t<numbers>

The number is that of the example in its set, from 0; what the others are is said by each task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairseq.criterions import FairseqCriterion

from ..errors import InputError


def print_prediction(number: int, predicted: str, numbers: Iterable[float]) -> None:
    """Writes one line."""
    print(f"C-{number}\t{predicted}\t{' '.join(f'{value:.6f}' for value in numbers)}")


def print_predictions(numbers: Sequence[int], predicted: Iterable[str], values: Iterable[Iterable[float]]) -> None:
    """Writes a batch."""
    for number, text, row in zip(numbers, predicted, values, strict=True):
        print_prediction(number, text, row)


OF_CLASSES = ("log_probabilities", "of_log_probabilities")
"""The methods of a criterion by which classes are predicted."""


def check_criterion(criterion: FairseqCriterion, cfg: Any, task: str, fitting: str, methods: Sequence[str]) -> None:
    """Refuses a criterion by which a model could be trained (fairseq's own leave out the class whose number is that of
    padding) and nothing be predicted.

    Args:
        criterion: what was built
        cfg: its options
        task: what it is to be a criterion of
        fitting: the one that is
        methods: what predictions are made by

    Raises:
        InputError: it lacks one of these.
    """
    if not all(hasattr(criterion, method) for method in methods):
        # fairseq's older criterions have their options in a Namespace.
        name = getattr(cfg, "_name", None) or getattr(cfg, "criterion", cfg)
        raise InputError(
            f"--criterion {name}: --task {task} needs --criterion {fitting}, or one of your own with "
            f"{' and '.join(f'{method}()' for method in methods)}"
        )
