"""Alignments: for each target word, how much of its attention each source word has (DPN-S2S, Figure 2)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from matplotlib.figure import Figure

from . import figures
from .forced_decoding import (
    FLOWS,
    Sentence,
    TrainedModel,
    add_model_arguments,
    add_sentences_argument,
    chosen,
    forced_decoding,
    joined,
    read_pairs,
)

CELL = 0.24
"""Inches of a figure for one word."""


@dataclass(frozen=True)
class Alignment:
    """Attention between the words of a pair, the end of sentence being the last word of either side.

    Attributes:
        source: S words
        target: T words
        flows: T rows of S weights that sum to 1: by ``cc``, ``ca``, ``ac``, ``aa`` (decoder path, then encoder path)
            for DPN-S2S, else ``attention``
    """

    source: list[str]
    target: list[str]
    flows: dict[str, list[list[float]]]


def align(trained: TrainedModel, pairs: Sequence[tuple[Sentence, Sentence]]) -> list[Alignment]:
    """The alignments of sentence pairs, by forced decoding.

    Raises:
        InputError: the model takes no sentences as long as these, or has no attention.
    """
    found: dict[int, Alignment] = {}
    for index, reading in forced_decoding(trained, pairs):
        source, target = pairs[index]
        found[index] = Alignment(
            [word.text for word in source.words_and_end],
            [word.text for word in target.words_and_end],
            {name: joined(weights, source, target).tolist() for name, weights in reading.flows.items()},
        )
    return [found[index] for index in range(len(pairs))]


def draw(alignment: Alignment) -> Figure:
    """One panel for each flow: source words along the x-axis, target words along the y-axis, as in Figure 2."""
    names = list(alignment.flows)
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    width = 1.1 + CELL * len(alignment.source)
    height = 1.1 + CELL * len(alignment.target)
    with figures.style():
        figure = Figure(figsize=(columns * width + 0.6, rows * height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        for axis, name in zip(axes, names, strict=False):
            image = axis.imshow(alignment.flows[name], cmap="Blues", vmin=0, vmax=1, aspect="equal")
            axis.set_xticks(range(len(alignment.source)), alignment.source, rotation=90)
            axis.set_yticks(range(len(alignment.target)), alignment.target)
            axis.tick_params(length=0, labelsize=8)
            axis.grid(visible=False)
            axis.spines[:].set_visible(True)
            axis.set_title(FLOWS.get(name, ""), fontsize=10)
        for axis in axes[len(names) :]:
            axis.set_visible(False)
        figure.colorbar(image, ax=list(axes), shrink=0.6, label="attention")
    return figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_model_arguments(parser)
    add_sentences_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Writes ``PREFIX.json``, and ``PREFIX_<number>.svg`` for each sentence."""
    figures.check_prefix(arguments.output)
    trained = TrainedModel.load(arguments.checkpoint, arguments.data)
    pairs = chosen(read_pairs(trained, arguments), arguments.sentences)
    alignments = align(trained, pairs)
    for number, alignment in zip(arguments.sentences, alignments, strict=True):
        path = f"{arguments.output}_{number}.{arguments.format}"
        figures.save(draw(alignment), path)
        print(path)
    sentences = [
        {"number": number, **asdict(alignment)}
        for number, alignment in zip(arguments.sentences, alignments, strict=True)
    ]
    content = {"checkpoint": str(arguments.checkpoint), "architecture": trained.architecture, "sentences": sentences}
    figures.save_numbers(content, arguments.output)
