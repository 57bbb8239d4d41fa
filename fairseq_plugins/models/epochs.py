"""Tells the recurrent networks of any model of each epoch of a training, before it begins."""

from __future__ import annotations

import functools

from fairseq.trainer import Trainer

from ..modules import RecurrentNetwork


def tell_networks_of_epochs() -> None:
    """Has fairseq's trainer call :meth:`.RecurrentNetwork.on_epoch`. It tells its task alone, which tells nobody.

    Further calls change nothing.
    """
    begin_epoch = Trainer.begin_epoch
    if hasattr(begin_epoch, "__wrapped__"):
        return

    @functools.wraps(begin_epoch)
    def tell(trainer: Trainer, epoch: int) -> None:
        begin_epoch(trainer, epoch)
        for module in trainer.get_model().modules():
            if isinstance(module, RecurrentNetwork):
                module.on_epoch(epoch)

    Trainer.begin_epoch = tell
