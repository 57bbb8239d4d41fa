"""A training that is resumed: what fairseq forgets of the one that was interrupted."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from fairseq import checkpoint_utils
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
from fairseq.tasks import FairseqTask
from fairseq.trainer import Trainer

from ..limits import EARLY_STOPPING, reached_limit
from .replacing import replace_once
from .saving import command_with

logger = logging.getLogger(__name__)


def keep_batches_when_resuming() -> None:
    """Makes a training that is resumed in a later epoch see the batches of one that was never interrupted.

    The choice of batches is seeded with the epoch in which they are made, and they are then kept for all epochs: those
    of epoch 1 in an uninterrupted training, others in a resumed one.

    For fairseq-fixed 0.12.3.1. fairseq 0.12.2 seeds them alike in every epoch.
    """
    if "rebuild_batches" not in FairseqTask.get_batch_iterator.__code__.co_consts:
        return

    def build(get_batch_iterator: Callable) -> Callable:
        signature = inspect.signature(get_batch_iterator)

        def get(self: FairseqTask, *args: Any, **keywords: Any) -> Any:
            call = signature.bind(self, *args, **keywords)
            call.apply_defaults()
            asked = call.arguments
            made_for_each_epoch = (
                asked["disable_iterator_cache"]
                or asked["update_epoch_batch_itr"]
                or getattr(self.cfg, "rebuild_batches", False)
                or not self.can_reuse_epoch_itr(asked["dataset"])
            )
            if made_for_each_epoch:
                return get_batch_iterator(*call.args, **call.kwargs)
            seed = asked["seed"]
            asked["seed"] = seed + 1 - asked["epoch"]  # fairseq adds the epoch
            iterator = get_batch_iterator(*call.args, **call.kwargs)
            iterator.seed = seed  # the order of the batches does depend on the epoch
            return iterator

        return get

    replace_once(FairseqTask, "get_batch_iterator", build)


def keep_limits_when_resuming() -> None:
    """Makes a training that is resumed end where one that was never interrupted does, or at once if it has ended.

    fairseq counts the validations without a better one on a function of its command, not in its checkpoints. It looks
    at ``--patience``, ``--max-update`` and ``--stop-time-hours`` after an update only, so that a training that has
    ended gets one more each time it is started again. Checkpoints without the count begin a new one.

    For fairseq 0.12.
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
        if extra_state is not None and asked.get("reset_meters"):
            self._previous_training_time = 0  # that of another training (--finetune-from-model)
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
    command = command_with("should_stop_early")
    return {} if command is None else vars(command.should_stop_early)


def tell_schedulers_when_resuming() -> None:
    """Makes a training that is resumed at the end of an epoch go on as one that was never interrupted.

    fairseq saves an epoch's checkpoint before it tells the learning rate scheduler of the validation loss. Resumed, it
    begins the next epoch, and the scheduler (``reduce_lr_on_plateau``, ``non_monotone``) never hears of that loss.

    For fairseq 0.12.
    """

    def build(load_checkpoint: Callable) -> Callable:
        def load(cfg: Any, trainer: Any, **keywords: Any) -> tuple[dict[str, Any] | None, Any]:
            extra_state, epoch_itr = load_checkpoint(cfg, trainer, **keywords)
            is_reset = cfg.reset_optimizer or cfg.reset_lr_scheduler or cfg.reset_dataloader
            if extra_state is not None and not is_reset and epoch_itr.epoch > 1:
                loss = extra_state.get("val_loss")
                if loss is not None and extra_state["train_iterator"].get("iterations_in_epoch") == 0:
                    trainer.lr_step(epoch_itr.epoch - 1, loss)
            return extra_state, epoch_itr

        return load

    replace_once(checkpoint_utils, "load_checkpoint", build)


def keep_patience_of_schedulers_when_resuming() -> None:
    """Makes ``reduce_lr_on_plateau`` remember how many epochs were no better, which ``--lr-patience`` counts.

    fairseq keeps the best loss alone, so that the count begins anew.

    For fairseq 0.12.
    """

    def keep(state_dict: Callable) -> Callable:
        def keeping(self: ReduceLROnPlateauLRSchedule) -> dict[str, Any]:
            return {**state_dict(self), "num_bad_epochs": self.lr_scheduler.num_bad_epochs}

        return keeping

    def restore(load_state_dict: Callable) -> Callable:
        def restoring(self: ReduceLROnPlateauLRSchedule, state: dict[str, Any]) -> None:
            load_state_dict(self, state)
            self.lr_scheduler.num_bad_epochs = state.get("num_bad_epochs", 0)

        return restoring

    replace_once(ReduceLROnPlateauLRSchedule, "state_dict", keep)
    replace_once(ReduceLROnPlateauLRSchedule, "load_state_dict", restore)
