"""How many edges lie between an output and an input so many steps before: DilatedRNN, Section 3, and its peers."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ..errors import InputError
from ..modules.recurrent.mean_recurrent_length import (
    clockwork_path_lengths,
    dilated,
    dilated_cnn,
    multi_channel_path_lengths,
    path_lengths,
    plain,
    recurrent_edges_per_node,
    skip,
)
from ..terminal import table
from .result import Analysis, Panel


@dataclass(frozen=True)
class NetworkMemory:
    """A network.

    Attributes:
        name: what it is
        edges_per_node: recurrent edges for each node (Definition 3.3); None where nodes differ
        mean: of the shortest paths over the spans 1 to the cycle (Definition 3.2); None where one has no path
        lengths: the shortest path for each span from 0 on; None where there is no path
    """

    name: str
    edges_per_node: float | None
    mean: float | None
    lengths: list[float | None]


def memories(dilations: Sequence[int], channels: int) -> list[NetworkMemory]:
    """A DilatedRNN beside networks of as many layers, a Clockwork RNN of as many groups, and an MC-RNN of one layer,
    over two cycles.

    Raises:
        InputError: a dilation or the number of channels is below 1.
    """
    if min(*dilations, channels) < 1:
        raise InputError("--dilations and --channels must be at least 1")
    cycle, layers = math.lcm(*dilations), len(dilations)
    networks = {
        f"DilatedRNN {', '.join(map(str, dilations))}": dilated(dilations),
        f"plain RNN, {layers} layers": plain(layers),
        f"skip RNN, {layers} layers, skip {cycle}": skip(layers, cycle),
        f"dilated CNN, {layers} layers": dilated_cnn(dilations),
    }
    network_memories = [
        _memory(name, recurrent_edges_per_node(network), path_lengths(network, 2 * cycle), cycle)
        for name, network in networks.items()
    ]
    periods = [2**group for group in range(layers)]
    for name, by_start in (
        (
            f"Clockwork RNN, {layers} groups",
            [clockwork_path_lengths(periods, 2 * cycle, start) for start in range(periods[-1])],
        ),
        (
            f"MC-RNN, {channels} channels, 1 layer",
            [multi_channel_path_lengths(channels, 2 * cycle, start) for start in range(1, channels + 1)],
        ),
    ):
        worst = [max(lengths) for lengths in zip(*by_start, strict=True)]
        network_memories.append(_memory(name, None, worst, cycle))
    return network_memories


def _memory(name: str, edges: float | None, lengths: Sequence[float], cycle: int) -> NetworkMemory:
    finite = [length if math.isfinite(length) else None for length in lengths]
    mean = sum(lengths[1 : cycle + 1]) / cycle
    return NetworkMemory(name, edges, mean if math.isfinite(mean) else None, finite)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command ``memory``."""
    parser.add_argument(
        "--dilations",
        type=int,
        nargs="+",
        default=[1, 2, 4, 8, 16, 32],
        metavar="S",
        help="of the layers, from the lowest on (default: 1 2 4 8 16 32)",
    )
    parser.add_argument("--channels", type=int, default=3, metavar="C", help="of the MC-RNN (default: 3)")


def run(arguments: argparse.Namespace) -> Analysis:
    """The command ``memory``."""
    networks = memories(arguments.dilations, arguments.channels)
    rows = [
        {"network": network.name, "mean path length": network.mean, "recurrent edges per node": network.edges_per_node}
        for network in networks
    ]
    return Analysis({"networks": [asdict(network) for network in networks]}, [Panel(networks)], table(rows))
