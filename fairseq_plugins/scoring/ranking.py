"""MAP and MRR of ranked candidates, by the package pytrec-eval-terrier; ties are broken at random, with a seed.

An output is a candidate's score. A reference is ``QUESTION LABEL``: the question that the candidate belongs to, and
whether it answers it, 1 or 0. trec_eval itself breaks ties by the candidates' names, which would reward the order of a
file: WikiQA's test set has right answers early.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from ..errors import InputError
from .metrics import Column, Metric, Outputs, References, register_metric
from .predictions import read_predictions

TIES_SEED = 12345


class Ranking(Metric):
    """Mean average precision and mean reciprocal rank over questions, in percent."""

    name: ClassVar[str] = "ranking"
    label: ClassVar[str] = "MAP and MRR"
    columns = (
        Column("map", "MAP", paper="map", largest=100),
        Column("mrr", "MRR", paper="mrr", largest=100),
    )
    decoding: ClassVar[str] = "classification"
    unit: ClassVar[str] = "questions"

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        """(questions, 3): average precision, reciprocal rank, and 1.

        Raises:
            InputError: a score is no number.
            ValueError: not one output for each reference.
        """
        pairs = [reference.rpartition(" ") for reference in references.tokens[0]]
        scores = [float(score) for score in outputs.tokens]
        if (number := next((number for number, score in enumerate(scores, 1) if math.isnan(score)), None)) is not None:
            raise InputError(f"the score of candidate {number:,} is nan: the training diverged; lower --lr")
        return question_scores(scores, [label == "1" for _, _, label in pairs], [question for question, _, _ in pairs])

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        values = 100 * summed[:-1] / summed[-1]
        return np.array([values[index] for index, column in enumerate(Ranking.columns) if column in self.columns])

    def sentence_scores(self, outputs: Outputs, references: References) -> np.ndarray:
        """Of each question."""
        single = self.only(self.main.key)
        return np.array([single.scores_of(row)[0] for row in self.statistics(outputs, references)])

    def read(self, path: Path) -> Outputs:
        outputs = read_predictions(path)
        for number, line in enumerate(outputs.tokens, 1):
            try:
                float(line)
            except ValueError:
                raise InputError(f"{path}: '{line}', of candidate {number}, is no score") from None
        return outputs

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        return f"{super().signature(column, references, bootstrap)}|ties:random-{TIES_SEED}|trec_eval"


def question_scores(scores: Sequence[float], is_right: Sequence[bool], questions: Sequence[str]) -> np.ndarray:
    """Average precision, reciprocal rank and 1 of each question, (questions, 3), in their first order.

    Args:
        scores: of each candidate, higher is better; equal ones are put in an order that a seed decides.
        is_right: whether it answers its question.
        questions: which question it belongs to.

    Raises:
        ValueError: the three differ in length, or a score is no number.
    """
    # Not at the head of the file: what asks for names alone does not wait for it.
    import pytrec_eval

    if not len(scores) == len(is_right) == len(questions):
        raise ValueError(f"{len(scores)} scores, {len(is_right)} labels and {len(questions)} questions")
    values = np.asarray(scores, dtype=float)
    if np.isnan(values).any():
        raise ValueError("a score is no number")
    ties = np.random.default_rng(TIES_SEED).permutation(len(values))
    ranks = np.empty(len(values))
    ranks[np.lexsort((ties, values))] = np.arange(len(values))
    relevance: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for number, (question, right) in enumerate(zip(questions, is_right, strict=True)):
        relevance.setdefault(question, {})[str(number)] = int(right)
        # pytrec_eval keeps scores as 32-bit numbers; ranks within a question stay exact.
        run.setdefault(question, {})[str(number)] = float(ranks[number])
    for candidates in run.values():
        for rank, name in enumerate(sorted(candidates, key=candidates.__getitem__)):
            candidates[name] = float(rank)
    evaluated = pytrec_eval.RelevanceEvaluator(relevance, {"map", "recip_rank"}).evaluate(run)
    return np.array([[evaluated[question]["map"], evaluated[question]["recip_rank"], 1] for question in relevance])


register_metric(Ranking())
