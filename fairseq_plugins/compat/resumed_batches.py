"""The batches of a training that is resumed, which fairseq-fixed chooses anew."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from fairseq.tasks import FairseqTask

from .replacing import replace_once


def keep_batches_when_resuming() -> None:
    """Makes a training that is resumed in a later epoch see the batches of one that was never interrupted.

    fairseq-fixed seeds the choice of batches with the epoch in which it makes them, and then keeps them for all
    epochs: those of epoch 1 in an uninterrupted training, others in a resumed one. fairseq 0.12.2 does not.
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
