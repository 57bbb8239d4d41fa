"""The limits of a training that is resumed: fairseq forgets how long ``--patience`` has lasted, and trains first."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable
from typing import Any

from fairseq.trainer import Trainer

from ..limits import EARLY_STOPPING, reached_limit
from .replacing import replace_once

logger = logging.getLogger(__name__)


def keep_limits_when_resuming() -> None:
    """Makes a training that is resumed end where one that was never interrupted does, or at once if it has ended.

    fairseq counts the validations without a better one on a function of its command, not in its checkpoints. It looks
    at ``--patience``, ``--max-update`` and ``--stop-time-hours`` after an update only, so that a training that has
    ended gets one more each time it is started again. Checkpoints without the count begin a new one.
    """
    replace_once(Trainer, "save_checkpoint", _keeping_the_count)
    replace_once(Trainer, "load_checkpoint", _restoring_the_count)


def _keeping_the_count(save_checkpoint: Callable) -> Callable:
    def save(self: Trainer, filename: str, extra_state: dict[str, Any]) -> str | None:
        count = _count()
        kept = {EARLY_STOPPING: {"best": count["best"], "num_runs": count["num_runs"]}} if "best" in count else {}
        return save_checkpoint(self, filename, {**extra_state, **kept})

    return save


def _restoring_the_count(load_checkpoint: Callable) -> Callable:
    signature = inspect.signature(load_checkpoint)

    def load(self: Trainer, *args: Any, **keywords: Any) -> dict[str, Any] | None:
        extra_state = load_checkpoint(self, *args, **keywords)
        asked = signature.bind(self, *args, **keywords).arguments
        resets = ("reset_optimizer", "reset_lr_scheduler", "reset_meters")
        if extra_state is None or self.cfg.checkpoint.reset_dataloader or any(asked.get(name) for name in resets):
            return extra_state  # a training begins
        _count().update(extra_state.get(EARLY_STOPPING, {}))
        limits = self.cfg.optimization
        patience = self.cfg.checkpoint.patience
        reached = reached_limit(
            self.get_num_updates(), extra_state, limits.max_update, patience, limits.stop_time_hours
        )
        if reached is not None:
            logger.info(f"nothing is trained: {reached}")
            limits.max_epoch = -1  # fairseq's command looks at it when this is done
        return extra_state

    return load


def _count() -> dict[str, Any]:
    """Where fairseq's command counts."""
    # It has been imported before its --user-dir, as __main__ with python -m. Importing it here would set up logging.
    modules = (sys.modules.get(name) for name in ("__main__", "fairseq_cli.train"))
    functions = (getattr(module, "should_stop_early", None) for module in modules)
    return next((vars(function) for function in functions if function is not None), {})
