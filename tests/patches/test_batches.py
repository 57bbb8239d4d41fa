"""Batches hold every sentence, and the processes that make them end with the epoch."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import time
from argparse import Namespace
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_plugins.patches.batches import (
    end_data_threads_before_the_process,
    end_data_workers_with_their_epoch,
    keep_last_batch,
)
from fairseq_plugins.tasks.streaming_language_modeling import (
    StreamingLanguageModelingConfig,
    StreamingLanguageModelingTask,
)
from fairseq_plugins.tasks.streams import Text
from tests.commands import run_command

from .unpatched import for_fairseq_fixed, needless

EPOCHS = 4


@settings(max_examples=200)
@given(
    lengths=st.lists(st.integers(1, 12), max_size=60),
    max_sentences=st.none() | st.integers(1, 20),
    max_tokens=st.none() | st.integers(12, 80),
    multiple=st.sampled_from([1, 2, 8]),
    vectorised=st.booleans(),
)
def test_batches_hold_every_sentence_within_the_limits(
    lengths, max_sentences, max_tokens, multiple, vectorised
) -> None:
    indices = np.argsort(lengths, kind="stable")[::-1].astype(np.int64)
    batches = data_utils.batch_by_size(
        iter(indices),
        num_tokens_fn=lambda index: lengths[index],
        num_tokens_vec=np.array(lengths, dtype=np.int64)[indices] if vectorised else None,
        max_tokens=max_tokens,
        max_sentences=max_sentences,
        required_batch_size_multiple=multiple,
    )
    assert [index for batch in batches for index in batch] == list(indices)
    for batch in batches:
        assert len(batch) > 0
        assert max_sentences is None or len(batch) <= max_sentences
        assert max_tokens is None or len(batch) * max(lengths[index] for index in batch) <= max_tokens
        assert len(batch) < multiple or len(batch) % multiple == 0 or batch is batches[-1]


def test_batches_of_fixed_shapes_are_left_alone() -> None:
    batches = data_utils.batch_by_size(
        np.arange(5), lambda index: 3, required_batch_size_multiple=8, fixed_shapes=[(2, 4)]
    )
    assert [list(batch) for batch in batches] == [[0, 1], [2, 3], [4]]


def test_fairseq_drops_the_last_batch(unpatch: Callable[[object, str], None]) -> None:
    for_fairseq_fixed(keep_last_batch)
    unpatch(data_utils, "batch_by_size")
    batches = data_utils.batch_by_size(np.arange(11), lambda index: 1, max_sentences=8, required_batch_size_multiple=8)
    assert sum(map(len, batches)) < 11, needless(keep_last_batch)


class Numbers(FairseqDataset):
    """Four numbers; ``is_new`` says whether each epoch has examples of its own."""

    def __init__(self, is_new: bool) -> None:
        super().__init__()
        self.is_new = is_new

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(index)

    def num_tokens(self, index: int) -> int:
        return 1

    def size(self, index: int) -> int:
        return 1

    def collater(self, samples: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(samples)

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return not self.is_new


@pytest.fixture
def without_collection(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """fairseq's iterators are in cycles: what holds a process until one is collected would hold it for long."""
    # A process looks so often whether it is still needed.
    for module in torch.utils.data._utils, torch.utils.data._utils.worker, torch.utils.data._utils.pin_memory:
        monkeypatch.setattr(module, "MP_STATUS_CHECK_INTERVAL", 0.1)
    others = {process.pid for process in multiprocessing.active_children()}
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()
    wait_for(0, others)


def workers(others: set[int | None]) -> int:
    return sum(process.pid not in others for process in multiprocessing.active_children())


def wait_for(count: int, others: set[int | None], seconds: float = 30) -> int:
    """How many there are once there are no more than ``count``, or after a while."""
    end = time.monotonic() + seconds
    while workers(others) > count and time.monotonic() < end:
        time.sleep(0.05)
    return workers(others)


def left_after(iterators: Iterator[EpochBatchIterator], most: int, seconds: float = 30) -> int:
    others = {process.pid for process in multiprocessing.active_children()}
    for iterator in iterators:
        assert sum(1 for _ in iterator.next_epoch_itr(shuffle=False)) > 0
    return wait_for(most, others, seconds)


def iterators(is_new: bool, buffer: int) -> Iterator[EpochBatchIterator]:
    """One for each epoch."""
    task, dataset = FairseqTask(Namespace()), Numbers(is_new)
    for epoch in range(1, EPOCHS + 1):
        yield task.get_batch_iterator(dataset, max_sentences=2, num_workers=1, epoch=epoch, data_buffer_size=buffer)


@pytest.mark.system
@pytest.mark.parametrize("buffer", [0, 10])
@pytest.mark.parametrize("is_new", [True, False])
def test_workers_end_with_an_iterator_that_is_of_one_epoch(is_new: bool, buffer: int, without_collection: None) -> None:
    # One that goes on to the next epoch keeps its worker.
    assert left_after(iterators(is_new, buffer), 0 if is_new else 1) == (0 if is_new else 1)


@pytest.mark.system
def test_fairseq_keeps_workers_of_one_epoch(unpatch: Callable[[object, str], None], without_collection: None) -> None:
    for_fairseq_fixed(end_data_workers_with_their_epoch)
    unpatch(FairseqTask, "get_batch_iterator")
    left = left_after(itertools.islice(iterators(is_new=True, buffer=10), 1), 0, seconds=1)
    assert left > 0, needless(end_data_workers_with_their_epoch)


def test_workers_end_with_an_epoch_of_streams(without_collection: None) -> None:
    task = StreamingLanguageModelingTask(StreamingLanguageModelingConfig(tokens_per_sample=5), Dictionary())
    text = Text(torch.arange(40) % 7, eos=2, pad=1, is_training=True)
    iterators = (
        task.get_batch_iterator(text, max_sentences=2, num_workers=1, epoch=epoch) for epoch in range(1, EPOCHS + 1)
    )
    assert left_after(iterators, 0) == 0


# A training that stops in the middle of an epoch, or whose last batch is still being let go of.
STOPS = """
import sys, time
from fairseq.data.iterators import BufferedIterator
{patch}

class Batches:
    def __len__(self):
        return 9

    def __iter__(self):
        try:
            yield from range({batches})
        finally:
            time.sleep(0.3)
            print("let go")

iterator = BufferedIterator(2, Batches())
assert next(iterator) == 0
time.sleep(0.1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("batches", [9, 1])
def test_threads_end_before_the_process(batches: int) -> None:
    name = end_data_threads_before_the_process.__name__
    patch = f"from fairseq_plugins.patches.batches import {name}; {name}()"
    assert run_command(["python", "-c", STOPS.format(patch=patch, batches=batches)]).stdout == "let go\n"
    unpatched = run_command(["python", "-c", STOPS.format(patch="", batches=batches)], status=None)
    assert unpatched.stdout == "", needless(end_data_threads_before_the_process)
