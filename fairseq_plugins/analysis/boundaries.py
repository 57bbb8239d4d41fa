"""Where an HM-RNN encoder sees boundaries in a sentence (the detectors z of each level but the top one)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from ..decoding.forced_decoding import layer_details
from ..decoding.translation import Sentence, TranslationModel
from ..errors import InputError
from ..symbols import END
from .result import Analysis
from .sentences import add_model_arguments, add_sentences_argument, analysis_of_sentences, chosen, read_sources


@dataclass(frozen=True)
class Boundaries:
    """A sentence.

    Attributes:
        pieces: its T BPE tokens, the end of sentence being the last one
        directions: ``forwards`` and ``backwards``, each with T rows of L - 1 numbers, 1 where a level ends a segment
            after having read the token
    """

    pieces: list[str]
    directions: dict[str, list[list[int]]]


def boundaries(trained: TranslationModel, sentences: Sequence[Sentence]) -> list[Boundaries]:
    """What an encoder's detectors say.

    Raises:
        InputError: the model's encoder is not an HM-RNN of two levels or more.
    """
    results = []
    for sentence in sentences:
        layers = layer_details(trained, sentence, "boundaries")
        if not layers:
            raise InputError(
                f"{trained.path}: the encoder of '{trained.architecture}' has no boundaries; give the checkpoint of an "
                "HM-RNN of two levels or more"
            )
        by_direction = {layer.direction: layer.values.int().tolist() for layer in layers}
        results.append(Boundaries([*sentence.pieces, END], by_direction))
    return results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_model_arguments(parser, target=False)
    add_sentences_argument(parser)


def run(arguments: argparse.Namespace) -> Analysis:
    """The boundaries in some sentences, a figure for each, and the segments of each level."""
    trained = TranslationModel.load([arguments.checkpoint], arguments.data)
    sentences = boundaries(trained, chosen(read_sources(trained, arguments), arguments.sentences))
    return analysis_of_sentences(trained, arguments.sentences, sentences, segments)


def segments(sentence: Boundaries) -> list[str]:
    """A line for each level and direction: the tokens, a stroke where the level sees a boundary."""
    lines = []
    for direction, rows in sentence.directions.items():
        for level in range(len(rows[0])):
            words = []
            for piece, row in zip(sentence.pieces, rows, strict=True):
                # Backwards a segment ends with its leftmost token.
                mark = [piece, "|"] if direction == "forwards" else ["|", piece]
                words += mark if row[level] else [piece]
            lines.append(f"  level {level + 1}, {direction}: {' '.join(words)}")
    return lines
