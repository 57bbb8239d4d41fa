"""The averaged weights of ``--optimizer asgd``, which a trainer has to ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fairseq.trainer import Trainer

from .replacing import replace_once


def use_averaged_weights() -> None:
    """Has fairseq's trainer validate and save the averaged weights, and train the optimizer's own.

    ``begin_valid_epoch`` and ``consolidate_optimizer`` are what it calls before it validates and saves. At the latter a
    task that carries states also gathers them (``task.gather_states``), because one process saves for all.

    For fairseq 0.12, whose optimizers have one set of weights.
    """
    for name, action in (
        ("begin_valid_epoch", "hold_averages"),
        ("consolidate_optimizer", "hold_averages"),
        ("train_step", "hold_parameters"),
    ):
        replace_once(Trainer, name, functools.partial(_preceded, action))


def _preceded(action: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def method(trainer: Trainer, *args: Any, **keywords: Any) -> Any:
        from ..optim.asgd import averaged_optimizer  # here, since importing it registers the optimizers

        optimizer = averaged_optimizer(trainer.optimizer)
        if optimizer is not None:
            getattr(optimizer, action)()
        if original.__name__ == "consolidate_optimizer" and hasattr(trainer.task, "gather_states"):
            trainer.task.gather_states()
        return original(trainer, *args, **keywords)

    return method
