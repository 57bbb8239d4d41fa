"""What a model of reading comprehension answers to some questions, and which of their words it looked at for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from ..corpora.reading_comprehension import read_owners, read_references
from ..decoding.answers import Answer
from ..decoding.classification import ClassificationModel
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..files import read_lines
from ..models.reading_comprehension import ReadingComprehensionModel
from ..samples import spread


@dataclass(frozen=True)
class AnsweredQuestion:
    """One question.

    Attributes:
        question: its words, as the model reads them
        passage: the text that it is on
        answer: the model's, with its place there
        references: the answers that are wanted
        shares: what the answer's words attended to in matching: a share for each word of the question; they add up to 1
    """

    question: list[str]
    passage: str
    answer: Answer
    references: list[str]
    shares: list[float]


def answered_questions(
    checkpoint: Path, data: PreparedData, count: int, subset: str = "test"
) -> list[AnsweredQuestion]:
    """Asks a model some questions, spread over a set.

    Raises:
        InputError: the model is another, or was trained with other dictionaries.
    """
    trained = ClassificationModel.load([checkpoint], data.folder)
    model, preparation = trained.model, data.passages
    if not isinstance(model, ReadingComprehensionModel):
        raise InputError(f"{checkpoint}: no model of reading comprehension")
    dataset = trained.dataset(subset)
    passages = list(read_lines(data.folder / "raw" / f"{subset}.passage"))
    references = read_references(data.folder / "raw" / f"{subset}.answers")
    owners = read_owners(data.folder, subset)
    examples = []
    for index in spread(len(dataset), count):
        sample = dataset.collater([dataset[index]])
        with torch.no_grad():
            [hypothesis] = trained.task.predictions(sample, model, trained.criterion)
            matched, _ = model.matched(**sample["net_input"])
        first, last = map(int, hypothesis[0].split())
        words = [trained.task.dictionary[number] for number in sample["net_input"]["question_tokens"][0].tolist()]
        passage = passages[owners[index]]
        answer = Answer.of(hypothesis, passage, preparation.passage_words(passage))
        shares = matched.weights[first : last + 1, 0].mean(dim=0).tolist()
        examples.append(AnsweredQuestion(words, passage, answer, references[index], shares))
    return examples
