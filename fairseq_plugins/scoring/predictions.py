"""The table in which predictions are kept: what is predicted, and numbers that belong to it, a line for each example.

Its first line is ``predicted`` and the names of the numbers, such as the classes, of whose probabilities they are the
natural logarithms.

Answers to questions are in a table of their own: an answer's first character in its passage, the one behind its last,
the natural logarithm of its probability, and its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError
from ..files import atomic_file, read_lines
from .metrics import Outputs

HEADING = "predicted"


def write_predictions(path: Path, outputs: Outputs, names: Sequence[str]) -> None:
    """Writes the table; where there are not as many names as numbers, they are counted from 1."""
    rows = list(zip(outputs.tokens, outputs.log_probabilities or (), strict=True))
    count = len(rows[0][1]) if rows else 0
    headings = names if len(names) == count else [str(number) for number in range(1, count + 1)]
    with atomic_file(path) as stream:
        stream.write("\t".join([HEADING, *headings]) + "\n")
        for predicted, numbers in rows:
            stream.write("\t".join([predicted, *(f"{number:.6f}" for number in numbers)]) + "\n")


def read_predictions(path: Path) -> Outputs:
    """Reads the table, or a file of what is predicted alone, a line for each example.

    Raises:
        InputError: there is no such file, or a number is none; the message names file and line.
    """
    lines = list(read_lines(path))
    if not lines or lines[0].split("\t")[0] != HEADING:
        return Outputs(lines, lines)
    predicted, numbers = [], []
    for place, line in enumerate(lines[1:], 2):
        first, *rest = line.split("\t")
        predicted.append(first)
        try:
            numbers.append([float(text) for text in rest])
        except ValueError as error:
            raise InputError(f"{path}, line {place}: {error}; evaluate with 'fairseq-plugins evaluate' again") from None
    return Outputs(predicted, predicted, numbers)


def outputs_of_answers(answers: Sequence[tuple[str, Sequence[float]]]) -> Outputs:
    """Answers as they are scored; the tokens are their places.

    Args:
        answers: of each ``START STOP``, a tab and its text, and the logarithm
    """
    rows = [line.partition("\t") for line, _ in answers]
    return Outputs([place for place, _, _ in rows], [text for _, _, text in rows], [numbers for _, numbers in answers])


def write_answers(path: Path, outputs: Outputs) -> None:
    """Writes the table of answers."""
    with atomic_file(path) as stream:
        for place, text, [number] in zip(outputs.tokens, outputs.text, outputs.log_probabilities or (), strict=True):
            stream.write("\t".join([*place.split(), f"{number:.6f}", text]) + "\n")


def read_answers(path: Path) -> Outputs:
    """Reads the table of answers.

    Raises:
        InputError: there is no such file, or a line is none of the table; the message names file and line.
    """
    answers = []
    for place, line in enumerate(read_lines(path), 1):
        try:
            start, stop, number, text = line.split("\t", 3)
            answers.append((f"{int(start)} {int(stop)}\t{text}", [float(number)]))
        except ValueError:
            raise InputError(
                f"{path}, line {place}: no place, number and answer; evaluate with 'fairseq-plugins evaluate' again"
            ) from None
    return outputs_of_answers(answers)
