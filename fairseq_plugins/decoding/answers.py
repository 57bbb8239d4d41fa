"""Answers to questions on a passage, with their places in its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..corpora.reading_comprehension import Word, normalized, read_owners
from ..errors import InputError
from ..files import read_lines
from .classification import ClassificationModel
from .prepared_data import PreparedData
from .trained_model import BatchOptions, Stopwatch


@dataclass(frozen=True)
class Answer:
    """An answer.

    Attributes:
        text: as the passage has it
        start, stop: its first character in the passage (:func:`.normalized`), and the one behind its last
        log_probability: natural logarithm
    """

    text: str
    start: int
    stop: int
    log_probability: float

    @classmethod
    def of(cls, hypothesis: tuple[str, list[float]], passage: str, words: Sequence[Word]) -> Answer:
        """What the task predicts, its first and last word and a logarithm, as a part of a passage in one line, which is
        read as these words."""
        first, last = (words[int(place)] for place in hypothesis[0].split())
        return cls(passage[first.start : last.stop], first.start, last.stop, hypothesis[1][0])

    @property
    def line(self) -> str:
        """``START STOP``, a tab, and the text."""
        return f"{self.start} {self.stop}\t{self.text}"


def in_passages(
    hypotheses: Mapping[int, tuple[str, list[float]]], data: PreparedData, subset: str
) -> dict[int, tuple[str, list[float]]]:
    """What the task predicts for questions of a prepared set, by their numbers, as :attr:`Answer.line`."""
    owners = read_owners(data.folder, subset)
    passages = list(read_lines(data.folder / "raw" / f"{subset}.passage"))
    words = {owner: data.passages.passage_words(passages[owner]) for owner in {owners[number] for number in hypotheses}}
    answers = {
        number: Answer.of(hypothesis, passages[owners[number]], words[owners[number]])
        for number, hypothesis in hypotheses.items()
    }
    return {number: (answer.line, [answer.log_probability]) for number, answer in answers.items()}


def answer(
    model: ClassificationModel, questions: Sequence[tuple[str, str]], options: BatchOptions
) -> list[Answer | None]:
    """What a model answers.

    Args:
        model: of reading comprehension
        questions: each with its passage
        options: how they are put together

    Returns:
        an answer for each, whose place is in :func:`.normalized` of the passage; None where the question is empty.

    Raises:
        InputError: a passage is empty.
    """
    preparation = model.data.passages
    words_of: dict[str, list[Word]] = {}
    asked, places = [], []
    for place, (question, passage) in enumerate(questions):
        words, text = preparation.words(normalized(question)), normalized(passage)
        if not words:
            continue
        if text not in words_of:
            words_of[text] = preparation.passage_words(text)
        if not words_of[text]:
            raise InputError(f"question {place + 1:,}: the passage is empty; write it")
        asked.append((text, _joined(words)))
        places.append(place)
    answers: list[Answer | None] = [None] * len(questions)
    if asked:
        numbers = {text: number for number, text in enumerate(words_of)}
        of_passages = [(numbers[text], question) for text, question in asked]
        dataset = model.task.dataset_of_texts(list(map(_joined, words_of.values())), of_passages)
        for number, hypothesis in model.predict(dataset, options, Stopwatch()):
            passage, _ = asked[number]
            answers[places[number]] = Answer.of(hypothesis, passage, words_of[passage])
    return answers


def _joined(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)
