"""Has fairseq validate and save the averaged weights of ``--optimizer asgd``, and train its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fairseq.optim import FP16Optimizer, MemoryEfficientFP16Optimizer
from fairseq.trainer import Trainer

from ..compat.replacing import replace_once
from ..errors import InputError
from .asgd import AveragedSGD


def use_averaged_weights() -> None:
    """Changes fairseq's trainer; further calls change nothing.

    ``begin_valid_epoch`` and ``consolidate_optimizer`` are what it calls before it validates and saves. At the latter a
    task that carries states also gathers them (``task.gather_states``), because one process saves for all.
    """
    for name, action in (
        ("begin_valid_epoch", AveragedSGD.hold_averages),
        ("consolidate_optimizer", AveragedSGD.hold_averages),
        ("train_step", AveragedSGD.hold_parameters),
    ):
        replace_once(Trainer, name, functools.partial(_preceded, action))


def _preceded(action: Callable[[AveragedSGD], None], original: Callable[..., Any]) -> Callable[..., Any]:
    def method(trainer: Trainer, *args: Any, **keywords: Any) -> Any:
        optimizer = averaged_optimizer(trainer.optimizer)
        if optimizer is not None:
            action(optimizer)
        if original.__name__ == "consolidate_optimizer" and hasattr(trainer.task, "gather_states"):
            trainer.task.gather_states()
        return original(trainer, *args, **keywords)

    return method


def averaged_optimizer(optimizer: Any) -> AveragedSGD | None:
    """The optimizer itself, or what fairseq's ``--amp`` has wrapped; None where it is another.

    Raises:
        InputError: it is wrapped for half precision, where what is averaged is not what the model has.
    """
    inner = getattr(optimizer, "fp32_optimizer", optimizer)
    inner = getattr(inner, "wrapped_optimizer", inner)
    if not isinstance(inner, AveragedSGD):
        return None
    if isinstance(optimizer, (FP16Optimizer, MemoryEfficientFP16Optimizer)):
        raise InputError("--optimizer asgd does not go with --fp16 or --bf16: leave them out, or take --amp")
    return inner
