"""The order of examples in an epoch: new in each, and examples of similar length beside each other."""

from __future__ import annotations

import numpy as np
from fairseq.data import BaseWrapperDataset, FairseqDataset

BLOCK = 1024
"""Among so many examples those of similar length are together, so that batches have little padding."""


class EpochOrderedDataset(BaseWrapperDataset):
    """A dataset whose order is drawn anew for each epoch, by seed and number of the epoch.

    Args:
        dataset: with ``sizes`` (N,).
        sizes: (N,) lengths that batches are made by.
        seed: of the training.
        shuffles: otherwise examples are in the order of their lengths.
    """

    def __init__(self, dataset: FairseqDataset, sizes: np.ndarray, seed: int, shuffles: bool) -> None:
        super().__init__(dataset)
        self._sizes, self._seed, self._shuffles, self._epoch = np.asarray(sizes), seed, shuffles, 1

    @property
    def sizes(self) -> np.ndarray:
        return self._sizes

    def num_tokens(self, index: int) -> int:
        return int(self._sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self._sizes[indices]

    def size(self, index: int) -> int:
        return int(self._sizes[index])

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return not self._shuffles

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        self._epoch = epoch

    def ordered_indices(self) -> np.ndarray:
        if not self._shuffles:
            return np.argsort(self._sizes, kind="stable")
        shuffled = np.random.default_rng((self._seed, self._epoch)).permutation(len(self._sizes))
        blocks = [shuffled[start : start + BLOCK] for start in range(0, len(shuffled), BLOCK)]
        return np.concatenate([block[np.argsort(self._sizes[block], kind="stable")] for block in blocks])
