"""How focused a decoder's attention is: the entropy of its alignments over a whole set (DPN-S2S, Table 5)."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor
from tqdm import tqdm

from . import figures
from .forced_decoding import FLOWS, Sentence, TrainedModel, add_model_arguments, attention, read_pairs


def sentence_entropy(weights: Tensor) -> float:
    """The entropy -sum x log x, natural logarithm, of each target token's alignment in weights (T, S), averaged over T.

    A weight of zero counts as zero.
    """
    weights = weights.double()
    return -torch.special.xlogy(weights, weights).sum(dim=1).mean().item()


def mean_entropies(flows: Iterable[dict[str, Tensor]]) -> dict[str, float]:
    """The mean over sentences of :func:`sentence_entropy`, for each flow."""
    found: dict[str, list[float]] = {}
    for sentence in flows:
        for name, weights in sentence.items():
            found.setdefault(name, []).append(sentence_entropy(weights))
    # fmean adds exactly: the order of the batches changes nothing.
    return {name: statistics.fmean(values) for name, values in found.items()}


def entropies(trained: TrainedModel, pairs: Sequence[tuple[Sentence, Sentence]]) -> dict[str, float]:
    """The entropy of a model's alignments (Section 5.5): forced decoding, in nats, for each flow.

    The alignment of a target token is the mean over layers and heads; tokens are averaged within a sentence, the end of
    sentence included, then sentences.

    Raises:
        InputError: as :func:`.forced_decoding.attention`.
    """
    progress = tqdm(attention(trained, pairs), total=len(pairs), unit=" sentences", disable=None, leave=False)
    return mean_entropies(flows for _, flows in progress)


def draw(values: dict[str, float]) -> Figure:
    """Bars, one for each flow."""
    with figures.style():
        figure = Figure(figsize=(5, 0.9 + 0.45 * len(values)), layout="constrained")
        axis = figure.subplots()
        names = [FLOWS.get(name, name) for name in values]
        bars = axis.barh(names, list(values.values()), height=0.6, color=figures.PALETTE[0])
        axis.bar_label(bars, fmt="%.3f", padding=4)
        axis.margins(x=0.15)
        axis.invert_yaxis()
        axis.set_xlabel("entropy of the alignments (nats)")
        axis.grid(visible=False, axis="y")
    return figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_model_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Writes ``PREFIX.svg`` and ``PREFIX.json``, and prints the entropy of each flow."""
    figures.check_prefix(arguments.output)
    trained = TrainedModel.load(arguments.checkpoint, arguments.data)
    pairs = read_pairs(trained, arguments)
    values = entropies(trained, pairs)
    for name, value in values.items():
        print(f"{FLOWS.get(name, name)}: {value:.3f} nats")
    content = {
        "checkpoint": str(arguments.checkpoint),
        "architecture": trained.architecture,
        "sentences": len(pairs),
        "entropy": values,
    }
    figures.save_with_numbers(draw(values), content, arguments.output, arguments.format)
