"""``fairseq-plugins predict``: text in, classes or answers out, with the corpus's preparation replayed."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..checkpoints import checkpoint_of, require_checkpoint
from ..command_parser import CommandParser
from ..corpora.labelled_audio import LabelledAudioPreparation
from ..corpora.reading_comprehension import ReadingPreparation
from ..errors import InputError
from ..files import read_lines
from .command_line import begin_decoding, standard_input, started

if TYPE_CHECKING:
    from ..decoding.classification import ClassificationModel
    from ..decoding.trained_model import BatchOptions, Hypothesis

_NOTES = """\
A line out is the class, a tab, and each class with its probability; of a model that ranks, the candidate's score. Pairs
of texts have a tab between them. Tokenisation and lower-casing are those of preparation.json in the prepared data.

Of a model of reading comprehension a line in is a question, with --passage on the text of that file, else with a tab
and its passage. A line out is the answer, a tab, its place in the passage (17-29: characters 17 to 28, from 0, each run
of white space counted as one), a tab, and its probability.

A model of recordings reads the path of a file from each line."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "predict",
        "Predicts the classes of texts, or answers questions, with a trained model: raw text in, one line out for each "
        "line.",
        (
            "work/trec/rcrn < text",
            "work/fairytale_qa/rnet --passage story.txt < questions",
            "work/vctk/dilated_gru < paths",
        ),
        _NOTES,
        passes_on_to="fairseq-validate",
    )
    options.add_argument("checkpoint", metavar="CHECKPOINT", help="a file, or a work folder for its best")
    options.add_argument(
        "--data", type=Path, metavar="DIR", help="the prepared data (default: what the checkpoint was trained on)"
    )
    options.add_argument("--passage", type=Path, metavar="FILE", help="a text, on which all questions are")
    options.add_argument(
        "--gpus", type=int, choices=(0, 1), help="0 for the CPU, 1 for a GPU (default: a GPU where there is one)"
    )
    return options


def main(arguments: Sequence[str]) -> None:
    """Predicts for each line of the standard input."""
    options, extra = parser().parse_and_pass_on(arguments)
    path = str(checkpoint_of(options.checkpoint))
    require_checkpoint(Path(path))
    started(path, sys.stderr)
    begin_decoding([path])
    from ..decoding.classification import ClassificationModel
    from ..decoding.trained_model import BatchOptions
    from .fairseq_commands import decoding_options, device_of

    model = ClassificationModel.load([path], options.data, device_of(options.gpus))
    model.require_predictions()
    parsed, _ = decoding_options("validate", model.data, {}, extra)
    batches = BatchOptions.of(parsed)
    if isinstance(model.data.preparation, ReadingPreparation):
        _print_answers(model, options.passage, batches)
        return
    if options.passage is not None:
        raise InputError(f"--passage: {path} answers no questions; leave it out")
    if isinstance(model.data.preparation, LabelledAudioPreparation):
        from ..decoding.recordings import classify_recordings

        lines = standard_input("paths of recordings")
        hypotheses = iter(classify_recordings(model, [Path(line) for line in lines if line.strip()], batches))
        for line in lines:
            print(shown(next(hypotheses) if line.strip() else None, model.data.labelled_audio.labels))
        return
    preparation = model.data.labelled_texts
    labels = [] if preparation.is_ranking else preparation.labels
    for hypothesis in model.predictions_of(standard_input("texts"), batches):
        print(shown(hypothesis, labels))


def _print_answers(model: ClassificationModel, passage: Path | None, batches: BatchOptions) -> None:
    """The answer to each question of the standard input."""
    from ..decoding.answers import answer

    text = None if passage is None else "\n".join(read_lines(passage))
    questions = []
    for number, line in enumerate(standard_input("questions"), 1):
        question, tab, its_passage = line.partition("\t")
        if line.strip() and (text is None) != bool(tab):
            remedy = "write QUESTION TAB PASSAGE, or give --passage" if text is None else "leave out what is behind it"
            raise InputError(f"standard input, line {number}: {'a' if tab else 'no'} tab in the line; {remedy}")
        questions.append((question, its_passage if text is None else text))
    for reply in answer(model, questions, batches):
        print(
            "" if reply is None else f"{reply.text}\t{reply.start}-{reply.stop}\t{math.exp(reply.log_probability):.4f}"
        )


def shown(hypothesis: Hypothesis | None, labels: Sequence[str]) -> str:
    """A prediction as a line: the class, then each class with its probability; nothing for no text."""
    if hypothesis is None:
        return ""
    predicted, numbers = hypothesis
    shares = " ".join(f"{label}={math.exp(number):.4f}" for label, number in zip(labels, numbers, strict=True))
    return f"{predicted}\t{shares}" if shares else predicted
