"""Processes that load data end with the epoch whose batches they make."""

from __future__ import annotations

import gc
import multiprocessing
import time
from argparse import Namespace
from collections.abc import Iterator

import pytest
import torch
from fairseq.data import Dictionary, FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask

import fairseq_plugins  # noqa: F401
from fairseq_plugins.tasks.streaming_language_modeling import (
    StreamingLanguageModelingConfig,
    StreamingLanguageModelingTask,
)
from fairseq_plugins.tasks.streams import Text

EPOCHS = 4


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
def without_collection() -> Iterator[None]:
    """fairseq's iterators are in cycles: what holds a process until one is collected would hold it for long."""
    others = {process.pid for process in multiprocessing.active_children()}
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()
    wait_for(0, others)


def workers(others: set[int | None]) -> int:
    return sum(process.pid not in others for process in multiprocessing.active_children())


def wait_for(count: int, others: set[int | None]) -> int:
    """How many there are once there are no more than ``count``, or after a while."""
    end = time.monotonic() + 30
    while workers(others) > count and time.monotonic() < end:
        time.sleep(0.05)
    return workers(others)


def left_after(iterators: Iterator[EpochBatchIterator], most: int) -> int:
    others = {process.pid for process in multiprocessing.active_children()}
    for iterator in iterators:
        assert sum(1 for _ in iterator.next_epoch_itr(shuffle=False)) > 0
    return wait_for(most, others)


@pytest.mark.parametrize("buffer", [0, 10])
@pytest.mark.parametrize("is_new", [True, False])
def test_workers_end_with_an_iterator_that_is_of_one_epoch(is_new: bool, buffer: int, without_collection: None) -> None:
    task, dataset = FairseqTask(Namespace()), Numbers(is_new)

    def iterators() -> Iterator[EpochBatchIterator]:
        for epoch in range(1, EPOCHS + 1):
            yield task.get_batch_iterator(dataset, max_sentences=2, num_workers=1, epoch=epoch, data_buffer_size=buffer)

    # One that goes on to the next epoch keeps its worker.
    assert left_after(iterators(), 0 if is_new else 1) == (0 if is_new else 1)


def test_workers_end_with_an_epoch_of_streams(without_collection: None) -> None:
    task = StreamingLanguageModelingTask(StreamingLanguageModelingConfig(tokens_per_sample=5), Dictionary())
    text = Text(torch.arange(40) % 7, eos=2, pad=1, is_training=True)
    iterators = (
        task.get_batch_iterator(text, max_sentences=2, num_workers=1, epoch=epoch) for epoch in range(1, EPOCHS + 1)
    )
    assert left_after(iterators, 0) == 0
