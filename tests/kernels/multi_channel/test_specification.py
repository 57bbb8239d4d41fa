"""What a layer can be said to be, Eq. 1, and the order of the channels that follows from it."""

from __future__ import annotations

import itertools

import pytest
import torch

from fairseq_plugins.kernels import MultiChannelSpecification
from fairseq_plugins.kernels.multi_channel.specification import channel_slots, in_degree


def test_in_degree_of_the_printed_equation() -> None:
    n = 4  # block size: three channels
    assert [in_degree(t, k, n - 1) for t, k in ((4, 2), (8, 2), (12, 2), (2, 1))] == [2, 3, 1, 1]
    for t in (4, 7, 10):
        assert [in_degree(t, k, n - 1) for k in (1, 2, 3)] == [3, 2, 1]


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
def test_in_degree_goes_round(channels: int) -> None:
    for t, k in itertools.product(range(1, 30), range(1, channels + 1)):
        m = in_degree(t, k, channels)
        assert 1 <= m <= channels
        assert in_degree(t + 1, k, channels) == m % channels + 1
    assert {in_degree(9, k, channels) for k in range(1, channels + 1)} == set(range(1, channels + 1))


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_path_length_of_section_5_2(channels: int) -> None:
    """From i to i + l: ceil(l / C) steps in the channel where i begins a block, at most one more in any other."""
    for length in range(1, 25):
        best = -(-length // channels)
        for start in range(1, channels + 1):
            steps = {k: _shortest_path(start, start + length, k, channels) for k in range(1, channels + 1)}
            assert min(steps.values()) == best
            assert max(steps.values()) <= best + 1
            begins_block = next(k for k in steps if in_degree(start, k, channels) == channels)
            assert steps[begins_block] == best


def _shortest_path(start: int, end: int, channel: int, channels: int) -> int:
    distance = {start: 0}
    for t in range(start + 1, end + 1):
        m = in_degree(t, channel, channels)
        distance[t] = 1 + min((distance[t - j] for j in range(1, m + 1) if t - j in distance), default=10**9)
    return distance[end]


def test_slots_follow_the_channels() -> None:
    slots = channel_slots(torch.tensor([0, 5]), 6, 3)
    assert slots.shape == (6, 2, 3)
    for t, b, k in itertools.product(range(6), range(2), range(3)):
        time = (0, 5)[b] + t + 1
        assert slots[t, b, k] == in_degree(time + 1, k + 1, 3) - 1


def test_what_the_papers_layers_are() -> None:
    mc_rnn = MultiChannelSpecification.multi_channel("gru", "state", 3)
    assert (mc_rnn.lags, mc_rnn.channels, mc_rnn.is_staggered, mc_rnn.has_attention) == ((1, 2, 3), 3, True, True)
    assert [mc_rnn.shift(j) for j in range(3)] == [0, 1, 2]
    like = torch.zeros(1)
    assert mc_rnn.divisors(like).tolist() == mc_rnn.outputs_read(like).tolist() == [1, 2, 3]

    skip_rnn = MultiChannelSpecification.higher_order("rnn", "gate", [1, 256])
    assert (skip_rnn.channels, skip_rnn.is_staggered, skip_rnn.has_attention) == (1, False, False)
    assert (skip_rnn.longest_lag, skip_rnn.gates, skip_rnn.shift(1)) == (256, 1, 0)
    assert skip_rnn.divisors(like).tolist() == [1] and skip_rnn.outputs_read(like).tolist() == [2]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"cell": "sru"}, "unknown cell 'sru'; choose from lstm, gru, rnn"),
        ({"connection": "both"}, "unknown connection 'both'; choose from state, gate"),
        ({"lags": ()}, "lags must be positive and ascending, at least 1 of them, not \\[\\]"),
        ({"lags": (0, 1)}, "positive and ascending"),
        ({"lags": (2, 1)}, "positive and ascending"),
        ({"lags": (1, 1)}, "positive and ascending"),
        ({"channels": 0}, "at least 1 channel, not 0"),
        (
            {"channels": 2, "lags": (1, 3), "is_staggered": True},
            "2 staggered channels read as many lags, not \\[1, 3\\]",
        ),
        ({"channels": 2, "lags": (1, 2), "is_staggered": True}, "several channels are staggered, and need attention"),
        ({"channels": 2, "lags": (1, 2), "has_attention": True}, "several channels are staggered, and need attention"),
    ],
)
def test_what_does_not_fit(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiChannelSpecification(**arguments)
