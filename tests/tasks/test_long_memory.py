"""Copy memory and pixels: what sequences are, and what is new in each epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fairseq_plugins.errors import InputError
from fairseq_plugins.tasks.long_memory import CopyMemoryDataset, LongMemoryConfig, LongMemoryTask, PixelDataset


def test_copy_memory() -> None:
    """DilatedRNN, Section 4.1: ten values, T - 1 times 8, eleven times 9."""
    dataset = CopyMemoryDataset(6, 5, seed=(1,))
    batch = dataset.collater([0, 4])
    x, target = batch["net_input"]["x"], batch["target"]
    assert x.shape == (2, 25) and batch["ntokens"] == 50
    assert (x[:, :10] == target).all() and target.min() >= 0 and target.max() <= 7
    assert (x[:, 10:14] == 8).all() and (x[:, 14:] == 9).all()
    again = CopyMemoryDataset(6, 5, seed=(1,)).collater([0, 4])["target"]
    assert (again == target).all()
    dataset.set_epoch(2)
    assert (dataset.collater([0, 4])["target"] != target).any(), "sequences are new in each epoch"
    held_out = CopyMemoryDataset(1, 5, (1,), np.arange(10).reshape(1, 10) % 8)
    held_out.set_epoch(7)
    assert held_out.collater([0])["target"].tolist() == [[0, 1, 2, 3, 4, 5, 6, 7, 0, 1]]
    assert held_out.can_reuse_epoch_itr_across_epochs and not dataset.can_reuse_epoch_itr_across_epochs


def digits(length: int, is_renewed: bool, order: np.ndarray | None = None) -> PixelDataset:
    pixels = np.arange(3 * 784, dtype=np.int64).reshape(3, 784) % 256
    return PixelDataset(pixels.astype(np.uint8), np.array([5, 0, 9]), length, (1,), is_renewed, order)


def test_pixels() -> None:
    dataset = digits(784, True)
    batch = dataset.collater([2, 0])
    assert batch["target"].tolist() == [9, 5]
    expected = torch.arange(784).remainder(256) / 255
    torch.testing.assert_close(batch["net_input"]["x"][1], expected.float())
    order = np.random.RandomState(92916).permutation(784)
    permuted = digits(784, True, order).collater([0])["net_input"]["x"][0]
    torch.testing.assert_close(permuted, expected.float()[torch.from_numpy(order)])


def test_noise_follows_the_pixels() -> None:
    def noise(dataset: PixelDataset, epoch: int, indices: list[int]) -> torch.Tensor:
        dataset.set_epoch(epoch)
        x = dataset.collater(indices)["net_input"]["x"]
        assert x.shape == (len(indices), 800) and x.min() >= 0 and x.max() <= 1
        return x[:, 784:]

    training, held_out = digits(800, True), digits(800, False)
    assert (noise(training, 1, [0]) != noise(training, 2, [0])).any(), "new in each epoch"
    assert (noise(held_out, 1, [0]) == noise(held_out, 2, [0])).all()
    assert (noise(training, 1, [1, 0])[1] == noise(training, 1, [0])[0]).all(), "batch-mates change nothing"


@pytest.mark.parametrize("option", ["epoch_sequences", "sequence_length"])
def test_sequences_that_there_cannot_be(option: str) -> None:
    with pytest.raises(InputError) as raised:
        LongMemoryTask.setup_task(LongMemoryConfig(data="nowhere", **{option: 0}))
    assert str(raised.value) == f"--{option.replace('_', '-')} must be at least 1, not 0"
