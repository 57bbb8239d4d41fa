"""Where an HM-RNN encoder sees boundaries in a sentence (the detectors z of each level but the top one)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch

from ..errors import InputError
from ..models.recurrent_seq2seq import RecurrentEncoder
from .forced_decoding import (
    END,
    Sentence,
    TrainedModel,
    add_model_arguments,
    add_sentences_argument,
    chosen,
    read_sources,
)
from .result import Analysis, Panel

_DIRECTIONS = {"layers": "forwards", "backward_layers": "backwards"}


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


def boundaries(trained: TrainedModel, sentences: Sequence[Sentence]) -> list[Boundaries]:
    """What an encoder's detectors say.

    Raises:
        InputError: the model's encoder is not an HM-RNN of two levels or more.
    """
    encoder, dictionary = trained.model.encoder, trained.source_dictionary
    found = []
    for sentence in sentences:
        tokens = torch.tensor([[*map(dictionary.index, sentence.pieces), dictionary.eos()]])
        with torch.no_grad():
            details = encoder.details(tokens) if isinstance(encoder, RecurrentEncoder) else {}
        by_direction = {
            _DIRECTIONS[name.split(".")[0]]: value[0].int().tolist()
            for name, value in details.items()
            if name.endswith(".boundaries")
        }
        if not by_direction:
            raise InputError(
                f"{trained.path}: the encoder of '{trained.architecture}' has no boundaries; give the checkpoint of an "
                "HM-RNN of two levels or more"
            )
        found.append(Boundaries([*sentence.pieces, END], by_direction))
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_model_arguments(parser, target=False)
    add_sentences_argument(parser)


def run(arguments: argparse.Namespace) -> Analysis:
    """The boundaries in some sentences, a figure for each, and the segments of each level."""
    trained = TrainedModel.load(arguments.checkpoint, arguments.data)
    sentences = boundaries(trained, chosen(read_sources(trained, arguments), arguments.sentences))
    found = list(zip(arguments.sentences, sentences, strict=True))
    numbers = {
        "checkpoint": str(arguments.checkpoint),
        "architecture": trained.architecture,
        "sentences": [{"number": number, **asdict(sentence)} for number, sentence in found],
    }
    panels = [Panel(sentence, f"_{number}", tuple(segments(sentence))) for number, sentence in found]
    return Analysis(numbers, panels, "")


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
