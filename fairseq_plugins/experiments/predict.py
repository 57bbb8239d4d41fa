"""``fairseq-plugins predict``: text in, classes and their probabilities out, with the corpus's preparation replayed."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..checkpoints import checked_checkpoint, checkpoint_of, trained_on
from ..command_parser import CommandParser
from ..corpora.codec import list_of_texts
from ..errors import InputError
from . import fairseq_commands, processes, results
from .classification import Prediction, labelled_texts, predictions
from .command_line import standard_input, started
from .prepared_data import PreparedData

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
    results.load_extensions_of([path])
    checkpoint = checked_checkpoint(path)
    data = PreparedData.load(options.data or trained_on(checkpoint, path))
    labels = [] if labelled_texts(data).is_ranking else labelled_texts(data).labels
    data.verify("")
    data.check_trained_on(checkpoint, path)
    for prediction in predict(standard_input("texts"), path, data, options.gpus, extra):
        print(shown(prediction, labels))


def shown(prediction: Prediction | None, labels: Sequence[str]) -> str:
    """A prediction as a line: the class, then each class with its probability; nothing for no text."""
    if prediction is None:
        return ""
    pairs = zip(labels, prediction.numbers, strict=True)
    shares = " ".join(f"{label}={math.exp(number):.4f}" for label, number in pairs)
    return f"{prediction.predicted}\t{shares}" if shares else prediction.predicted


def predict(
    lines: Sequence[str],
    checkpoint: str,
    data: PreparedData,
    gpus: int | None = None,
    extra: Sequence[str] = (),
) -> list[Prediction | None]:
    """What a model makes of lines of text.

    Args:
        lines: texts; a pair has a tab between them; what is empty has no prediction
        checkpoint: the model
        data: what it was trained on; its preparation is applied
        gpus: 0 for the CPU, 1 for a GPU, None for a GPU where there is one
        extra: further options of fairseq-validate

    Raises:
        TypeError: ``lines`` is one text, or one of them is no text.
        InputError: a line has not as many texts as the model reads, the model reads tags, or fairseq-validate fails.
    """
    preparation = labelled_texts(data)
    if preparation.has_tags:
        raise InputError(
            f"{checkpoint}: the model reads a part-of-speech tag for each word, and plain text has none; prepare the "
            f"data without tags (prepare_entailment.sh --no-tags) and train a model on that"
        )
    lines = list_of_texts("predict", lines)
    encoded: list[str] = []
    for number, line in enumerate(lines, 1):
        texts = line.split("\t")
        if line.strip() and len(texts) != len(preparation.texts):
            wanted = " TAB ".join(preparation.texts)
            raise InputError(f"standard input, line {number}: {len(texts)} texts, but the model reads {wanted}")
        pieces = [preparation.encode(text) for text in texts]
        if any(pieces) and not all(pieces):
            raise InputError(f"standard input, line {number}: one of the texts is empty")
        encoded.append("\t".join(pieces) if all(pieces) else "")
    given = [line for line in encoded if line]
    if not given:
        return [None] * len(lines)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "input.txt"
        source.write_text("".join(line + "\n" for line in given), encoding="utf-8", newline="\n")
        options = ["--input-file", str(source), *extra]
        command = fairseq_commands.validate_command(data, checkpoint, "input", gpus, options)
        output: list[str] = []
        status = processes.run_here(command, output.append)
    if status != 0:
        raise processes.failure(command, status, output)
    found = iter(predictions(output, len(given), "fairseq-validate"))
    return [next(found) if line else None for line in encoded]
