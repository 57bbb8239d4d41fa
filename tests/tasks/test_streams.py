"""Streams and windows: every token once, in its place, after the token before it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_plugins.tasks.streams import SHORTEST_WINDOW, Text, window_lengths

EOS, PAD = 2, 1


@given(st.integers(1, 60), st.integers(1, 7), st.integers(1, 9), st.integers(1, 3))
def test_every_token_is_predicted_once_after_the_one_before(
    tokens: int, streams: int, window: int, processes: int
) -> None:
    if tokens < streams * processes:
        return
    text = Text(torch.arange(10, 10 + tokens), EOS, PAD, is_training=True)
    total = streams * processes
    lengths = window_lengths(text.longest_stream(total), window)
    rows: list[tuple[int, int]] = []
    for process in range(processes):
        by_stream: list[list[tuple[int, int]]] = [[] for _ in range(streams)]
        for number, sample in enumerate(
            text.windows(total, lengths, slice(process * streams, (process + 1) * streams))
        ):
            assert sample["window"] == number
            source, target = sample["net_input"]["src_tokens"], sample["target"]
            assert source.shape == target.shape == (streams, lengths[number])
            assert sample["ntokens"] == target.ne(PAD).sum()
            assert source.eq(PAD).equal(target.eq(PAD))
            for stream in range(streams):
                pairs = zip(source[stream].tolist(), target[stream].tolist(), strict=True)
                by_stream[stream] += [pair for pair in pairs if pair[1] != PAD]
        rows += [pair for stream in by_stream for pair in stream]
    expected = [EOS, *range(10, 10 + tokens - 1)]
    assert rows == list(zip(expected, range(10, 10 + tokens), strict=True)), "streams one after the other are the text"


def test_random_windows() -> None:
    lengths = window_lengths(200_000, 70, np.random.default_rng([1, 1]))
    assert sum(lengths) == 200_000
    assert lengths != window_lengths(200_000, 70, np.random.default_rng([1, 2])), "each epoch has its own"
    assert lengths == window_lengths(200_000, 70, np.random.default_rng([1, 1]))
    lengths = np.array(lengths[:-1])
    assert min(lengths) >= SHORTEST_WINDOW
    half = lengths < 52
    assert half.mean() == pytest.approx(0.05, abs=0.015)
    # Cutting off to whole tokens takes half a token on average.
    assert lengths[half].mean() == pytest.approx(34.5, abs=1.5)
    assert lengths[~half].mean() == pytest.approx(69.5, abs=0.5)
    assert lengths[~half].std() == pytest.approx(5, abs=0.3)
    assert min(window_lengths(2000, 6, np.random.default_rng(3))[:-1]) == SHORTEST_WINDOW


def test_windows_of_one_length() -> None:
    assert window_lengths(25, 10) == [10, 10, 5]
    assert window_lengths(20, 10) == [10, 10]
