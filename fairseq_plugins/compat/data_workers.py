"""Processes that load data, which fairseq-fixed keeps beyond the epoch whose batches they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask

from .replacing import replace_once


def end_data_workers_with_their_epoch() -> None:
    """Lets the workers of an iterator that serves one epoch alone end with it.

    fairseq-fixed's data loaders keep their workers for the next epoch. Where the task makes another iterator by then,
    there is no next one, and reference cycles keep the loader: each epoch leaves a process, with all memory that the
    training had when it was forked.
    """

    def build(get_batch_iterator: Callable) -> Callable:
        def get(self: FairseqTask, *args: Any, **keywords: Any) -> EpochBatchIterator:
            iterator = get_batch_iterator(self, *args, **keywords)
            is_kept = any(iterator is other for other in self.dataset_to_epoch_iter.values())
            return iterator if is_kept else without_persistent_workers(iterator)

        return get

    replace_once(FairseqTask, "get_batch_iterator", build)


def without_persistent_workers(iterator: EpochBatchIterator) -> EpochBatchIterator:
    """The same iterator, which has not begun; its workers will end with the epoch."""
    iterator.persistent_workers = False
    if iterator.num_workers:
        # The thread that fills a buffer lets go of them after the last batch. Without one a cycle holds them.
        iterator.buffer_size = max(iterator.buffer_size, 1)
    return iterator
