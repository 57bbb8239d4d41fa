"""The last batch of a data set, which fairseq-fixed drops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from fairseq.data import data_utils

from .replacing import replace_once


def keep_last_batch() -> None:
    """Gives back the last batch, which fairseq-fixed drops when its size is no multiple of the required one.

    Without it training, validation and generation silently leave out the sentences of that batch. fairseq 0.12.2
    keeps them. Every caller reads the function from ``data_utils``.
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
            if not isinstance(indices, np.ndarray):
                indices = np.fromiter(indices, dtype=np.int64, count=-1)
            if len(indices) == 0:
                return []
            batches = batch_by_size(
                indices,
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
            return [*batches, indices[kept:]] if kept < len(indices) else batches

        return keeping_last_batch

    replace_once(data_utils, "batch_by_size", build)
