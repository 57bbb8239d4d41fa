"""Which checkpoints a training keeps."""

from __future__ import annotations

import functools
import logging
import math
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from fairseq import checkpoint_utils
from fairseq.data import data_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.trainer import Trainer

from .replacing import replace_once

logger = logging.getLogger(__name__)


def command_with(function: str) -> ModuleType | None:
    """The module of the training command, which has this function; None where no training runs."""
    # It has been imported before its --user-dir, as __main__ with python -m. Importing it here would set up logging.
    modules = (sys.modules.get(name) for name in ("__main__", "fairseq_cli.train"))
    return next((module for module in modules if hasattr(module, function)), None)


class _SavingAlso:
    """A trainer whose checkpoints say also this.

    Args:
        trainer: that saves
        said: what their ``extra_state`` has
    """

    def __init__(self, trainer: Any, **said: Any) -> None:
        self._trainer, self._said = trainer, said

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trainer, name)

    def save_checkpoint(self, filename: str, extra_state: dict[str, Any]) -> str | None:
        """As fairseq's."""
        return self._trainer.save_checkpoint(filename, {**extra_state, **self._said})


def save_the_end() -> None:
    """Has a training that ends with an epoch save it, and validate it.

    fairseq does so for ``--max-update``, ``--patience`` and ``--stop-time-hours``. It ends by ``--max-epoch`` and
    ``--stop-min-lr`` elsewhere, and keeps of the last epoch what ``--save-interval`` and ``--validate-interval`` would
    have it keep of any: nothing, if they leave it out.

    For fairseq 0.12.
    """
    replace_once(checkpoint_utils, "load_checkpoint", _marking_ends_of_epochs)
    replace_once(checkpoint_utils, "save_checkpoint", _remembering_what_is_saved)
    replace_once(Trainer, "lr_step", _saving_the_end)


def _marking_ends_of_epochs(load_checkpoint: Callable) -> Callable:
    def load(*args: Any, **keywords: Any) -> Any:
        command = command_with("validate_and_save")  # by now it has been imported, whoever has registered this package
        if command is not None:
            replace_once(command, "validate_and_save", _remembering_the_epoch)
        return load_checkpoint(*args, **keywords)

    return load


def _remembering_the_epoch(validate_and_save: Callable) -> Callable:
    def remember(
        cfg: Any, trainer: Trainer, task: Any, epoch_itr: Any, valid_subsets: list[str], end_of_epoch: bool
    ) -> tuple[list[float | None], bool]:
        trainer.ended_epoch = epoch_itr if end_of_epoch else None
        return validate_and_save(cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch)

    return remember


def _remembering_what_is_saved(save_checkpoint: Callable) -> Callable:
    def save(cfg: Any, trainer: Trainer, epoch_itr: Any, val_loss: float | None) -> str | None:
        trainer.saved_updates = trainer.get_num_updates()
        return save_checkpoint(cfg, trainer, epoch_itr, val_loss)

    return save


def _saving_the_end(lr_step: Callable) -> Callable:
    def step(self: Trainer, epoch: int, val_loss: float | None = None) -> float:
        learning_rate = lr_step(self, epoch, val_loss)
        epoch_itr = vars(self).pop("ended_epoch", None)
        limits = self.cfg.optimization
        if epoch_itr is not None and (0 < limits.max_epoch <= epoch or learning_rate <= limits.stop_min_lr):
            _save(self, epoch_itr, val_loss)
        return learning_rate

    return step


def _save(trainer: Trainer, epoch_itr: Any, val_loss: float | None) -> None:
    cfg, updates = trainer.cfg, trainer.get_num_updates()
    is_saved = getattr(trainer, "saved_updates", None) == updates
    command = command_with("validate")
    if command is not None and val_loss is None and not cfg.dataset.disable_validation:
        if updates >= cfg.dataset.validate_after_updates:
            (val_loss, *_) = command.validate(
                cfg, trainer, trainer.task, epoch_itr, cfg.dataset.valid_subset.split(",")
            )
            is_saved = False
    if is_saved:
        return
    # The scheduler has heard of the loss already: one that goes on must not tell it again.
    saving = _SavingAlso(trainer, val_loss=None)
    path = checkpoint_utils.save_checkpoint(cfg.checkpoint, saving, epoch_itr, val_loss)
    if path is not None and hasattr(trainer.task, "post_save"):
        trainer.task.post_save(path, updates)


def prefer_numbers() -> None:
    """Has no validation that is not a number (NaN) be the best.

    fairseq compares with it: the checkpoint after it is called the best one, however bad it is. Where it is the first,
    no later one is better for ``--patience``. Here it is worse than all, which is said once.

    For fairseq 0.12.
    """
    replace_once(checkpoint_utils, "load_checkpoint", _reading_validations)
    replace_once(checkpoint_utils, "save_checkpoint", _passing_over_the_best)


def _reading_validations(load_checkpoint: Callable) -> Callable:
    def load(*args: Any, **keywords: Any) -> Any:
        command = command_with("should_stop_early")
        if command is not None:
            replace_once(command, "should_stop_early", counting_as_worst)
        return load_checkpoint(*args, **keywords)

    return load


def counting_as_worst(should_stop_early: Callable) -> Callable:
    """fairseq's function that counts validations for ``--patience``, with NaN as the worst value that there is."""
    has_said = False

    def stop(cfg: Any, valid_loss: float | None) -> bool:
        nonlocal has_said
        if valid_loss is not None and math.isnan(valid_loss):
            if not has_said and distributed_utils.is_master(cfg.distributed_training):
                metric = cfg.checkpoint.best_checkpoint_metric
                logger.warning(f"the validation's {metric} is not a number (NaN): it counts as worse than any other")
                has_said = True
            valid_loss = -math.inf if cfg.checkpoint.maximize_best_checkpoint_metric else math.inf
        return should_stop_early(cfg, valid_loss)

    return stop


def _passing_over_the_best(save_checkpoint: Callable) -> Callable:
    def save(cfg: Any, trainer: Any, epoch_itr: Any, val_loss: float | None) -> str | None:
        if val_loss is not None and math.isnan(val_loss):
            # Schedulers of one that goes on hear what they would have heard.
            trainer, val_loss = _SavingAlso(trainer, val_loss=val_loss), None
        return save_checkpoint(cfg, trainer, epoch_itr, val_loss)

    return save


def name_updates_that_end_epochs() -> None:
    """Has ``--save-interval-updates`` keep an update that ends an epoch, where that epoch's checkpoint is not kept.

    fairseq saves such an update as an epoch alone. With ``--no-epoch-checkpoints`` and as many updates an epoch there
    is none at all.

    For fairseq 0.12.
    """
    replace_once(checkpoint_utils, "save_checkpoint", _naming_updates)


class _AmidAnEpoch:
    """The batches of a training that is never at an epoch's end."""

    def __init__(self, epoch_itr: Any) -> None:
        self._epoch_itr = epoch_itr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoch_itr, name)

    def end_of_epoch(self) -> bool:
        """As fairseq's."""
        return False


def _naming_updates(save_checkpoint: Callable) -> Callable:
    def save(cfg: Any, trainer: Any, epoch_itr: Any, val_loss: float | None) -> str | None:
        is_named = cfg.save_interval_updates > 0 and trainer.get_num_updates() % cfg.save_interval_updates == 0
        if is_named and (cfg.no_epoch_checkpoints or epoch_itr.epoch % cfg.save_interval != 0):
            epoch_itr = _AmidAnEpoch(epoch_itr)
        return save_checkpoint(cfg, trainer, epoch_itr, val_loss)

    return save


def keep_as_many_of_the_best() -> None:
    """Has ``--keep-best-checkpoints`` keep as many as it says, once there are as many.

    fairseq keeps a new one only if it is as good as the worst that is kept, however few these are. Of two whose losses
    agree in three decimals, one may have the other's name.

    For fairseq 0.12.
    """
    replace_once(checkpoint_utils, "save_checkpoint", _keeping_as_many)


def _keeping_as_many(save_checkpoint: Callable) -> Callable:
    def save(cfg: Any, trainer: Any, epoch_itr: Any, val_loss: float | None) -> str | None:
        if cfg.keep_best_checkpoints <= 0 or val_loss is None:
            return save_checkpoint(cfg, trainer, epoch_itr, val_loss)
        if trainer.should_save_checkpoint_on_current_rank and not cfg.no_save:
            _make_way(cfg, trainer, epoch_itr, val_loss)
        checkpoint_paths = checkpoint_utils.checkpoint_paths
        checkpoint_utils.checkpoint_paths = functools.partial(
            _paths_and_place, checkpoint_paths, cfg, trainer.checkpoint_suffix
        )
        try:
            return save_checkpoint(cfg, trainer, epoch_itr, val_loss)
        finally:
            checkpoint_utils.checkpoint_paths = checkpoint_paths

    return save


def _make_way(cfg: Any, trainer: Any, epoch_itr: Any, val_loss: float) -> None:
    """Gives another name to a checkpoint of the best that has the new one's."""
    with data_utils.numpy_seed(epoch_itr.epoch, trainer.get_num_updates(), val_loss):
        number = np.random.randint(0, cfg.keep_best_checkpoints)  # as fairseq is about to draw it
    names = [
        f"checkpoint.best_{cfg.best_checkpoint_metric}_{val_loss:.3f}{other}{trainer.checkpoint_suffix}.pt"
        for other in range(cfg.keep_best_checkpoints)
    ]
    paths = [os.path.join(cfg.save_dir, name) for name in names]
    free = next((path for path in paths if not os.path.lexists(path)), None)
    if free is not None and os.path.lexists(paths[number]):
        os.rename(paths[number], free)


def _paths_and_place(
    checkpoint_paths: Callable, cfg: Any, suffix: str, folder: str, pattern: str, keep_match: bool = False
) -> list[Any]:
    """The checkpoints that match, best value last where less is better; among the best a free place is the worst."""
    paths = checkpoint_paths(folder, pattern, keep_match)
    if not pattern.startswith(r"checkpoint\.best_") or len(paths) >= cfg.keep_best_checkpoints:
        return paths
    if cfg.maximize_best_checkpoint_metric:
        return [*paths, os.path.join(folder, f"free_-inf{suffix}.pt")]
    return [os.path.join(folder, f"free_inf{suffix}.pt"), *paths]
