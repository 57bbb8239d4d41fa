"""The validation loss of the last epoch, which learning rate schedulers do not learn when a training is resumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq import checkpoint_utils

from .replacing import replace_once


def tell_schedulers_when_resuming() -> None:
    """Makes a training that is resumed at the end of an epoch go on as one that was never interrupted.

    fairseq saves an epoch's checkpoint before it tells the learning rate scheduler of the validation loss. Resumed, it
    begins the next epoch, and the scheduler (``reduce_lr_on_plateau``, ``non_monotone``) never hears of that loss.
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
