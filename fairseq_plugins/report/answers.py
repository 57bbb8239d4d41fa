"""What a page shows of a model of reading comprehension: answers in their passages, and what they attended to."""

from __future__ import annotations

import logging

import numpy as np

from ..corpora.reading_comprehension import ReadingPreparation
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..experiments.run import Run
from .page import ReportTable

logger = logging.getLogger(__name__)

QUESTIONS = 8
"""Of the test set."""
AROUND = 150
"""Characters that are shown on either side of an answer."""


def answers_table(run: Run, data: PreparedData) -> list[ReportTable]:
    """Some answers of the test set, each in its passage; none where the model gives no answers.

    Args:
        run: of an experiment
        data: its prepared data
    """
    if not isinstance(data.preparation, ReadingPreparation) or run.checkpoint is None:
        return []
    # Not at the head of the file: it imports fairseq.
    from ..analysis.answered_questions import answered_questions

    try:
        examples = answered_questions(run.checkpoint, data, QUESTIONS)
    except InputError as error:
        logger.debug(f"left out of the report: {error}")
        return []
    rows = []
    for one in examples:
        order = np.argsort(one.shares)[::-1][:3]
        most = ", ".join(f"{one.question[place]} {100 * one.shares[place]:.0f} %" for place in order)
        place = marked(one.passage, one.answer.start, one.answer.stop)
        rows.append([" ".join(one.question), place, " / ".join(one.references), most])
    notes = [
        "The answer is between the marks ▶ and ◀, with the passage around it; what is wanted is beside it.",
        "Shares of the attention of the answer's words to those of the question; the three largest.",
    ]
    return [ReportTable("Answers in their passages", ["Question", "Passage", "Wanted", "Attended to"], rows, notes)]


def marked(passage: str, start: int, stop: int) -> str:
    """The part of a passage around an answer, which is between marks."""
    before, after = passage[max(0, start - AROUND) : start], passage[stop : stop + AROUND]
    left, right = "… " if start > AROUND else "", " …" if stop + AROUND < len(passage) else ""
    return f"{left}{before}▶{passage[start:stop]}◀{after}{right}"
