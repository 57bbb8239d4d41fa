"""Batches hold every sentence."""

from __future__ import annotations

import numpy as np
from fairseq.data import data_utils
from hypothesis import given, settings
from hypothesis import strategies as st

import fairseq_plugins  # noqa: F401


@settings(deadline=None, max_examples=200)
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
