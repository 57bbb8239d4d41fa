"""Alignments: for each target word, how much of its attention each source word has (DPN-S2S, Figure 2)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from ..decoding.forced_decoding import forced_decoding
from ..decoding.translation import Sentence, TranslationModel
from .result import Analysis
from .sentences import add_model_arguments, add_sentences_argument, analysis_of_sentences, chosen, joined, read_pairs


@dataclass(frozen=True)
class Alignment:
    """Attention between the words of a pair, the end of sentence being the last word of either side.

    Attributes:
        source: S words
        target: T words
        flows: T rows of S weights that sum to 1: by ``cc``, ``ca``, … (decoder path, then encoder path) for DPN-S2S,
            else ``attention``
    """

    source: list[str]
    target: list[str]
    flows: dict[str, list[list[float]]]


def align(trained: TranslationModel, pairs: Sequence[tuple[Sentence, Sentence]]) -> list[Alignment]:
    """The alignments of sentence pairs, by forced decoding.

    Raises:
        InputError: the model takes no sentences as long as these, or has no attention.
    """
    alignments_by_index: dict[int, Alignment] = {}
    for index, reading in forced_decoding(trained, pairs):
        source, target = pairs[index]
        alignments_by_index[index] = Alignment(
            [word.text for word in source.words_and_end],
            [word.text for word in target.words_and_end],
            {name: joined(weights, source, target).tolist() for name, weights in reading.flows.items()},
        )
    return [alignments_by_index[index] for index in range(len(pairs))]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_model_arguments(parser)
    add_sentences_argument(parser)


def run(arguments: argparse.Namespace) -> Analysis:
    """The alignments of some sentences, a figure for each."""
    trained = TranslationModel.load([arguments.checkpoint], arguments.data)
    pairs = chosen(read_pairs(trained, arguments), arguments.sentences)
    return analysis_of_sentences(trained, arguments.sentences, align(trained, pairs))
