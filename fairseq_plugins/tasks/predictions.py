"""What a task predicts of an example, and the criterions by which it can.

A task that predicts has ``predictions(sample, model, criterion)``: of each example of a batch a :data:`Prediction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairseq.criterions import FairseqCriterion

from ..errors import InputError

Prediction = tuple[str, list[float]]
"""What is predicted, and numbers: what they are is said by each task."""

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
