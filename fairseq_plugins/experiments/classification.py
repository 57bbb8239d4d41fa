"""How the classes of texts, or scores of candidates, are predicted: fairseq-validate, which prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..corpora.labelled_texts import LabelledTextsPreparation
from ..errors import InputError
from ..files import read_lines
from ..scoring.metrics import Outputs, References
from ..scoring.predictions import read_predictions, write_predictions
from . import fairseq_commands
from .configuration import Configuration
from .prepared_data import PreparedData


@dataclass(frozen=True)
class Prediction:
    """What a model makes of one example.

    Attributes:
        predicted: its class, or its score
        numbers: of each class the natural logarithm of its probability; none of a score
    """

    predicted: str
    numbers: list[float]


def labelled_texts(data: PreparedData) -> LabelledTextsPreparation:
    """How the data was prepared.

    Raises:
        InputError: it is of another kind.
    """
    if not isinstance(data.preparation, LabelledTextsPreparation):
        raise InputError(
            f"{data.folder}: a corpus of the kind '{data.preparation.kind}', but this needs labelled texts"
        )
    return data.preparation


def predictions(output: Iterable[str], count: int, name: str | Path) -> list[Prediction]:
    """What is said in fairseq-validate's output of each example, in the order of the set.

    Raises:
        InputError: the examples are not exactly 0 … ``count`` - 1.
    """
    found: dict[int, Prediction] = {}
    for line in output:
        if match := re.match(r"C-(\d+)\t([^\t]*)\t(.*)", line):
            found[int(match[1])] = Prediction(match[2], [float(text) for text in match[3].split()])
    missing = [number for number in range(count) if number not in found]
    if missing or len(found) != count:
        which = f"; the first missing is example {missing[0] + 1}" if missing else ""
        raise InputError(f"{name}: {len(found):,} examples were predicted, but there are {count:,}{which}")
    return [found[number] for number in range(count)]


class Classification:
    """A class, or a score, for each example; see :class:`.decoding.Decoding`."""

    def command(
        self,
        configuration: Configuration,
        data: PreparedData,
        checkpoint: str,
        subset: str,
        gpus: int | None,
        extra: Sequence[str],
    ) -> list[str]:
        if ":" in checkpoint:
            raise InputError(f"{checkpoint}: one model predicts classes; give one checkpoint")
        return fairseq_commands.validate_command(data, checkpoint, subset, gpus, extra)

    def is_sentence(self, line: str) -> bool:
        return line.startswith("C-")

    def outputs(self, log: Path, data: PreparedData, count: int) -> Outputs:
        found = predictions(read_lines(log), count, log)
        classes = [each.predicted for each in found]
        return Outputs(classes, classes, [each.numbers for each in found])

    def references(self, data: PreparedData, subset: str) -> References:
        """The labels; where candidates are ranked, ``QUESTION LABEL``."""
        path = data.folder / "raw" / f"{subset}.label"
        if not path.is_file():
            known = ", ".join(data.preparation.splits)
            raise InputError(f"{path}: no such file; the prepared sets are {known}")
        labels = list(read_lines(path))
        if path.with_suffix(".group").is_file():
            questions = read_lines(path.with_suffix(".group"))
            labels = [f"{question} {label}" for question, label in zip(questions, labels, strict=True)]
        return References([labels], [labels])

    def write(self, outputs: Outputs, folder: Path, data: PreparedData, subset: str) -> None:
        """See :mod:`..scoring.predictions`; the numbers are those of the classes, where there are some."""
        write_predictions(self._file(folder, subset), outputs, getattr(data.preparation, "labels", []))

    def read(self, folder: Path, data: PreparedData, subset: str) -> Outputs:
        return read_predictions(self._file(folder, subset))

    def speed(self, log: Path) -> float | None:
        """fairseq-validate does not say it."""
        return None

    def variant(self, extra: Sequence[str]) -> str:
        return ""

    def _file(self, folder: Path, subset: str) -> Path:
        return folder / f"{subset}.predicted.tsv"
