"""Batches of a data set, and the processes that make them: what fairseq-fixed loses, and what it keeps too long."""

from __future__ import annotations

import atexit
import contextlib
import queue
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fairseq.data import data_utils
from fairseq.data.iterators import BackgroundConsumer, EpochBatchIterator
from fairseq.tasks import FairseqTask

from .replacing import replace_once


def keep_last_batch() -> None:
    """Gives back the last batch, which is dropped when its size is no multiple of the required one.

    Without it training, validation and generation silently leave out the sentences of that batch. Every caller reads
    the function from ``data_utils``.

    For fairseq-fixed 0.12.3.1. fairseq 0.12.2 keeps the batch.
    """
    probe = np.arange(3)
    batches = data_utils.batch_by_size(probe, None, np.ones_like(probe), required_batch_size_multiple=8)
    if sum(map(len, batches)) == len(probe):
        return

    def build(batch_by_size: Callable) -> Callable:
        def keeping_last_batch(
            indices: Sequence[int],
            num_tokens_fn: Callable[[int], int] | None,
            num_tokens_vec: Sequence[int] | None = None,
            max_tokens: int | None = None,
            max_sentences: int | None = None,
            required_batch_size_multiple: int = 1,
            fixed_shapes: Sequence[tuple[int, int]] | None = None,
        ) -> list[np.ndarray]:
            numbers: np.ndarray = (
                indices if isinstance(indices, np.ndarray) else np.fromiter(indices, dtype=np.int64, count=-1)
            )
            if len(numbers) == 0:
                return []
            batches = batch_by_size(
                numbers,
                num_tokens_fn,
                num_tokens_vec,
                max_tokens,
                max_sentences,
                required_batch_size_multiple,
                fixed_shapes,
            )
            if fixed_shapes is not None:
                return batches
            # The batches are consecutive pieces of the indices, each within the limits; what is missing at the end
            # was one of them.
            kept = sum(map(len, batches))
            return [*batches, numbers[kept:]] if kept < len(numbers) else batches

        return keeping_last_batch

    replace_once(data_utils, "batch_by_size", build)


def end_data_workers_with_their_epoch() -> None:
    """Lets the workers of an iterator that serves one epoch alone end with it.

    Data loaders keep their workers for the next epoch. Where the task makes another iterator by then, there is no next
    one, and reference cycles keep the loader: each epoch leaves a process, with all memory that the training had when
    it was forked.

    For fairseq-fixed 0.12.3.1. fairseq 0.12.2 keeps no workers.
    """

    def build(get_batch_iterator: Callable) -> Callable:
        def get(self: FairseqTask, *args: Any, **keywords: Any) -> EpochBatchIterator:
            iterator = get_batch_iterator(self, *args, **keywords)
            is_kept = any(iterator is other for other in self.dataset_to_epoch_iter.values())
            return iterator if is_kept else without_persistent_workers(iterator)

        return get

    replace_once(FairseqTask, "get_batch_iterator", build)


_consumers: weakref.WeakSet[BackgroundConsumer] = weakref.WeakSet()
_PATIENCE = 10.0
"""Seconds that a thread gets to end."""


def end_data_threads_before_the_process() -> None:
    """Has the threads that fill buffers of batches end, and let go of their workers, before Python itself does.

    They are daemons. One that is at work then, or still lets its workers go, is ended wherever it is; within a library
    in C++ that ends the process with "terminate called without an active exception", after "done training", and with a
    failure for an exit status.

    For fairseq 0.12.
    """

    def build(start: Callable) -> Callable:
        # After multiprocessing has registered what ends workers, so that this comes before it.
        atexit.register(_end_consumers)

        def noted(self: BackgroundConsumer) -> None:
            _consumers.add(self)
            start(self)

        return noted

    replace_once(BackgroundConsumer, "start", build)


def _end_consumers() -> None:
    end = time.monotonic() + _PATIENCE
    for consumer in list(_consumers):
        consumer._max_len = 0  # the batch that it is at is its last one
        while consumer.is_alive() and time.monotonic() < end:
            with contextlib.suppress(queue.Empty):
                while True:
                    consumer._queue.get_nowait()  # which it may wait to fill
            consumer.join(0.02)


def without_persistent_workers(iterator: EpochBatchIterator) -> EpochBatchIterator:
    """The same iterator, which has not begun; its workers will end with the epoch."""
    iterator.persistent_workers = False
    if iterator.num_workers:
        # The thread that fills a buffer lets go of them after the last batch. Without one a cycle holds them.
        iterator.buffer_size = max(iterator.buffer_size, 1)
    return iterator
