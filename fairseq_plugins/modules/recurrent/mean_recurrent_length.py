"""How far the past is from an output, in edges of the unrolled network: DilatedRNN, Section 3, and MC-RNN, Section 5.2.

The length of a path counts an edge into each layer and one for each recurrent connection, not the one to the output.
Everything is found by search in the unrolled graph, so that it holds for any dilations.

The closed forms of the papers are tests of the search. Eq. 7 of DilatedRNN as printed is slightly low: each lower
binary digit of n = 1 ... m is one m / 2 times, not (m - 1) / 2 times, so that for dilations 1, 2 ... m the mean is
3/2 log2 m + 1/m + 1. The bound floor(l / (n - 1)) + 1 that MC-RNN prints for blocks of n holds for the best channel;
others may exceed it, by one step, where l mod (n - 1) is at least 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Connections:
    """What a node of a layer at time t reads.

    Attributes:
        recurrent: the lags j at which it reads its own layer, at t - j.
        below: the lags at which it reads the layer below; several in a convolution.
    """

    recurrent: tuple[int, ...] = ()
    below: tuple[int, ...] = (0,)


def plain(layers: int) -> list[Connections]:
    """A stack of ordinary recurrent layers."""
    return [Connections((1,))] * layers


def skip(layers: int, length: int) -> list[Connections]:
    """A stack with skip connections beside the ordinary ones (Eq. 2)."""
    return [Connections((1, length))] * layers


def dilated(dilations: Sequence[int]) -> list[Connections]:
    """A DilatedRNN; a first dilation above 1 adds the convolution of Eq. 4 as the last layer."""
    layers = [Connections((dilation,)) for dilation in dilations]
    return layers if dilations[0] == 1 else [*layers, Connections((), tuple(range(dilations[0])))]


def dilated_cnn(dilations: Sequence[int]) -> list[Connections]:
    """A dilated convolutional network of kernel size 2 (Section 3.3)."""
    return [Connections((), (0, dilation)) for dilation in dilations]


def path_lengths(layers: Sequence[Connections], longest: int) -> list[float]:
    """For the spans 0 ... ``longest`` the length of the shortest path from an input to the output so much later;
    infinite where there is none."""
    reached = [0.0] + [math.inf] * longest
    for connections in layers:
        node = [math.inf] * (longest + 1)
        for t in range(longest + 1):
            read = [reached[t - j] for j in connections.below if j <= t]
            read += [node[t - j] for j in connections.recurrent if j <= t]
            node[t] = 1 + min(read, default=math.inf)
        reached = node
    return reached


def mean_path_length(layers: Sequence[Connections], cycle: int) -> float:
    """Definition 3.2: the mean of :func:`path_lengths` over the spans 1 ... ``cycle``; these networks are alike at all
    times, so that there is no worst time to look for."""
    return sum(path_lengths(layers, cycle)[1:]) / cycle


def mean_recurrent_length(dilations: Sequence[int]) -> float:
    """Definition 3.2 of a DilatedRNN over its cycle, the least common multiple of its dilations.

    Raises:
        ValueError: no dilation, or one below 1.
    """
    if not dilations or min(dilations) < 1:
        raise ValueError(f"dilations must be at least 1, not {list(dilations)}")
    return mean_path_length(dilated(dilations), reduce(math.lcm, dilations))


def recurrent_edges_per_node(layers: Sequence[Connections]) -> float:
    """N_r of Definition 3.3."""
    edges = sum(len(layer.recurrent) + sum(j > 0 for j in layer.below) for layer in layers)
    return edges / len(layers)


def multi_channel_path_lengths(channels: int, longest: int, start: int = 1, layers: int = 1) -> list[float]:
    """:func:`path_lengths` of an MC-RNN from the input at time ``start``, through the best of its channels."""
    reached = [0.0] + [math.inf] * longest
    for _ in range(layers):
        by_channel = [_through_channel(reached, k, channels, start) for k in range(1, channels + 1)]
        reached = [min(lengths) for lengths in zip(*by_channel, strict=True)]
    return reached


def clockwork_path_lengths(periods: Sequence[int], longest: int, start: int = 0) -> list[float]:
    """:func:`path_lengths` of a Clockwork RNN (Koutnik et al. 2014; Section 3.4) from the input at time ``start``.

    The group with period T is computed at the multiples of T, keeps its state in between, and reads the input and the
    states of all groups that are as slow or slower. The output reads every group.
    """
    reached: list[dict[int, float]] = []  # at each time the path to each group's state
    for time in range(start, start + longest + 1):
        before = reached[-1] if reached else {}
        states = dict(before)
        for period in periods:
            if time % period == 0:
                read = [length for other, length in before.items() if other >= period]
                states[period] = 1 + min([0.0] if time == start else read, default=math.inf)
        reached.append(states)
    return [min(states.values(), default=math.inf) for states in reached]


def channel_steps(channels: int, channel: int, start: int, span: int) -> int:
    """How many recurrent edges lie between the times ``start`` and ``start + span`` in one channel (Section 5.2)."""
    reached = [0.0] + [math.inf] * span
    return int(_through_channel(reached, channel, channels, start)[-1]) - 1


def _through_channel(reached: Sequence[float], channel: int, channels: int, start: int) -> list[float]:
    node: list[float] = []
    for n, from_below in enumerate(reached):
        in_degree = (start + n - channel - 1) % channels + 1  # Eq. 1 of MC-RNN
        node.append(1 + min([from_below, *node[max(0, n - in_degree) : n]]))
    return node
