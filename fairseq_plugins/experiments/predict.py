"""``fairseq-plugins predict``: text in, classes and their probabilities out, with the corpus's preparation replayed."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..checkpoints import checkpoint_of
from ..command_parser import CommandParser
from ..errors import InputError
from .command_line import begin_decoding, standard_input, started

if TYPE_CHECKING:
    from ..decoding.trained_model import Hypothesis

_NOTES = """\
A line out is the class, a tab, and each class with its probability; of a model that ranks, the candidate's score. Pairs
of texts have a tab between them. Tokenisation and lower-casing are those of preparation.json in the prepared data."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "predict",
        "Predicts the classes of texts with a trained model: raw text in, one line out for each line.",
        ("work/trec/rcrn < text",),
        _NOTES,
        passes_on_to="fairseq-validate",
    )
    options.add_argument("checkpoint", metavar="CHECKPOINT", help="a file, or a work folder for its best")
    options.add_argument(
        "--data", type=Path, metavar="DIR", help="the prepared data (default: what the checkpoint was trained on)"
    )
    options.add_argument(
        "--gpus", type=int, choices=(0, 1), help="0 for the CPU, 1 for a GPU (default: a GPU where there is one)"
    )
    return options


def main(arguments: Sequence[str]) -> None:
    """Predicts for each line of the standard input."""
    options, extra = parser().parse_and_pass_on(arguments)
    path = str(checkpoint_of(options.checkpoint))
    if not Path(path).is_file():
        raise InputError(f"{path}: no such checkpoint")
    started(path, sys.stderr)
    begin_decoding([path])
    from ..decoding.classification import ClassificationModel
    from ..decoding.trained_model import BatchOptions
    from .fairseq_commands import decoding_options, device_of

    model = ClassificationModel.load([path], options.data, device_of(options.gpus))
    preparation = model.data.labelled_texts
    labels = [] if preparation.is_ranking else preparation.labels
    parsed, _ = decoding_options("validate", model.data, {}, extra)
    for hypothesis in model.predictions_of(standard_input("texts"), BatchOptions.of(parsed)):
        print(shown(hypothesis, labels))


def shown(hypothesis: Hypothesis | None, labels: Sequence[str]) -> str:
    """A prediction as a line: the class, then each class with its probability; nothing for no text."""
    if hypothesis is None:
        return ""
    predicted, numbers = hypothesis
    shares = " ".join(f"{label}={math.exp(number):.4f}" for label, number in zip(labels, numbers, strict=True))
    return f"{predicted}\t{shares}" if shares else predicted
