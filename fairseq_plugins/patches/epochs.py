"""Tells the recurrent networks of any model of each epoch of a training, before it begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq.trainer import Trainer

from ..modules import RecurrentNetwork
from .replacing import replace_once


def tell_networks_of_epochs() -> None:
    """Has fairseq's trainer call :meth:`.RecurrentNetwork.on_epoch`. It tells its task alone, which tells nobody.

    For fairseq 0.12.
    """
    replace_once(Trainer, "begin_epoch", _telling)


def _telling(begin_epoch: Callable[..., Any]) -> Callable[..., Any]:
    def tell(trainer: Trainer, epoch: int) -> None:
        begin_epoch(trainer, epoch)
        for module in trainer.get_model().modules():
            if isinstance(module, RecurrentNetwork):
                module.on_epoch(epoch)

    return tell
