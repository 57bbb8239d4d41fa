"""Closed forms of the papers against the search."""

from __future__ import annotations

import itertools
import math

import pytest

from fairseq_plugins.modules import mean_recurrent_length
from fairseq_plugins.modules.recurrent.mean_recurrent_length import (
    channel_steps,
    clockwork_path_lengths,
    dilated,
    dilated_cnn,
    mean_path_length,
    multi_channel_path_lengths,
    path_lengths,
    plain,
    recurrent_edges_per_node,
    skip,
)


def powers(layers: int) -> list[int]:
    return [2**i for i in range(layers)]


def test_figures_of_small_networks() -> None:
    """Three layers of dilations 1, 2, 4: spans 1 ... 4 take 1, 1, 2, 1 recurrent edges, beside an edge a layer."""
    assert path_lengths(dilated(powers(3)), 4) == [3, 4, 4, 5, 4]
    assert [mean_recurrent_length(powers(layers)) for layers in (2, 3, 4)] == [3.0, 4.25, 5.625]


@pytest.mark.parametrize("layers", range(2, 9))
def test_closed_forms(layers: int) -> None:
    m = 2 ** (layers - 1)
    logarithm = math.log2(m)
    corrected = 1.5 * logarithm + 1 / m + 1
    assert mean_recurrent_length(powers(layers)) == pytest.approx(corrected)
    printed = (3 * m - 1) / (2 * m) * logarithm + 1 / m + 1
    assert corrected - printed == pytest.approx(logarithm / (2 * m)), "Eq. 7 is slightly low"
    assert mean_path_length(skip(layers, m), m) == pytest.approx((m - 1) / 2 + logarithm + 1 / m + 1), "Eq. 6"
    assert mean_path_length(plain(layers), m) == pytest.approx((m + 1) / 2 + layers)
    spans = path_lengths(dilated(powers(layers)), m)
    assert spans == [bin(n).count("1") + layers for n in range(m + 1)], "Theorem A.1"


@pytest.mark.parametrize("layers", range(2, 7))
def test_a_dilated_cnn_is_slightly_nearer_but_ends(layers: int) -> None:
    m = 2 ** (layers - 1)
    convolutional = dilated_cnn(powers(layers))
    assert mean_path_length(convolutional, m) == math.log2(m) + 1
    difference = mean_recurrent_length(powers(layers)) - mean_path_length(convolutional, m)
    assert difference == pytest.approx(math.log2(m) / 2 + 1 / m)
    assert path_lengths(convolutional, 2 * m)[-2:] == [layers, math.inf]


@pytest.mark.parametrize("base, layers", [(2, 4), (3, 3), (4, 3)])
def test_no_chain_of_divisors_is_better_than_powers(base: int, layers: int) -> None:
    """Theorem 3.1, by enumeration of the dilations 1 = s_1 <= ... <= s_d = M^(d-1), each a multiple of the last."""
    largest = base ** (layers - 1)
    divisors = [n for n in range(1, largest + 1) if largest % n == 0]
    chains = [
        [1, *inner, largest]
        for inner in itertools.product(divisors, repeat=layers - 2)
        if all(b % a == 0 for a, b in itertools.pairwise([1, *inner, largest]))
    ]
    assert len(chains) > 2
    best = min(mean_recurrent_length(chain) for chain in chains)
    assert mean_recurrent_length([base**i for i in range(layers)]) == best


def test_recurrent_edges_per_node() -> None:
    assert recurrent_edges_per_node(dilated(powers(4))) == 1
    assert recurrent_edges_per_node(skip(4, 8)) == 2
    assert recurrent_edges_per_node(dilated_cnn(powers(4))) == 1


def test_a_first_dilation_above_one_is_connected_by_its_fusion() -> None:
    lengths = path_lengths(dilated([2, 4]), 4)
    assert lengths == [3, 3, 4, 4, 4]
    assert path_lengths(dilated([2, 4])[:-1], 4)[1::2] == [math.inf, math.inf]


@pytest.mark.parametrize("channels", range(1, 6))
def test_paths_of_multi_channel_networks(channels: int) -> None:
    """Section 5.2: ceil(l / C) steps in the channel whose block begins there, at most one more in any other."""
    for start in range(1, channels + 1):
        for span in range(1, 13):
            steps = [channel_steps(channels, channel, start, span) for channel in range(1, channels + 1)]
            best = math.ceil(span / channels)
            assert min(steps) == best and max(steps) <= best + 1
            assert multi_channel_path_lengths(channels, span, start)[-1] == best + 1
            assert max(steps) <= span // channels + 1 or span % channels >= 2


@pytest.mark.parametrize("groups", range(1, 7))
def test_a_clockwork_rnn_depends_on_the_time(groups: int) -> None:
    """Section 3.4: from some times the past is near, from others it is as far as in a plain network."""
    m = 2 ** (groups - 1)
    lengths = [clockwork_path_lengths(powers(groups), 3 * m, start) for start in range(m)]
    assert lengths[0][:m] == [1] * m, "the slowest group keeps what it reads"
    assert lengths[0][m] == 2
    plain_rnn = path_lengths(plain(1), 3 * m)
    assert [max(of_starts) for of_starts in zip(*lengths, strict=True)] == (plain_rnn if m > 1 else lengths[0])
    if groups > 4:
        mean = sum(plain_rnn[1 : m + 1]) / m
        assert mean > mean_recurrent_length(powers(groups)), "a DilatedRNN of as many layers is better"


@pytest.mark.parametrize("start", range(6))
def test_a_clockwork_rnn_by_enumeration(start: int) -> None:
    """Of every way through the groups, computed one node at a time."""
    periods, longest = [1, 2, 6], 13

    def shortest(period: int, time: int) -> float:
        """To the state that a group has at a time."""
        updated = time - time % period
        if updated < start:
            return math.inf
        from_groups = [shortest(other, updated - 1) for other in periods if other >= period and updated > start]
        return 1 + min(from_groups, default=0 if updated == start else math.inf)

    expected = [min(shortest(period, start + span) for period in periods) for span in range(longest + 1)]
    assert clockwork_path_lengths(periods, longest, start) == expected


def test_bad_arguments() -> None:
    for dilations in ([], [1, 0]):
        with pytest.raises(ValueError, match="at least 1"):
            mean_recurrent_length(dilations)
