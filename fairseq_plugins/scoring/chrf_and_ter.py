"""chrF++ (Popović, 2017) and TER (Snover et al., 2006) of text, as sacrebleu's own command computes them.

Both use all of several references: chrF++ the one that a hypothesis is closest to, TER that and their mean length.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sacrebleu.metrics import CHRF, TER

from .bleu import has_hardly_spaces
from .metrics import Column, Outputs, References, SampledMetric, check_lengths, register_metric

_WORD_ORDER = 2
"""Of chrF++; chrF counts no words."""


class SacrebleuMetric(SampledMetric):
    """One of sacrebleu's metrics that are made of sums over sentences."""

    @abstractmethod
    def scorer(self, references: References) -> Any:
        """sacrebleu's metric, as these references want it."""

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        scorer = self.scorer(references)
        check_lengths(outputs.text, references.text)
        return np.array(scorer._extract_corpus_statistics(outputs.text, references.text), dtype=np.float64)

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        # Of sums alone: case is gone from them.
        scorer = self.scorer(References([], []))
        return np.array([scorer._compute_score_from_stats(summed.tolist()).score])

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        scorer = self.scorer(references)
        scorer.num_refs = len(references.text)
        signature = scorer.get_signature()
        for part in bootstrap.split("|") if bootstrap else ():
            signature.update(*part.split(":"))
        return str(signature)


class ChrF(SacrebleuMetric):
    """chrF++: n-grams of up to 6 characters and up to 2 words."""

    name = "chrf"
    label = "chrF++"
    columns = (Column("chrf", "chrF++", largest=100),)

    def scorer(self, references: References) -> CHRF:
        return CHRF(word_order=_WORD_ORDER, lowercase=references.lowercase)


class TranslationEditRate(SacrebleuMetric):
    """TER: edits of words, and shifts of phrases, by the reference's length; without regard to case."""

    name = "ter"
    label = "TER"
    columns = (Column("ter", "TER", higher_is_better=False),)

    def scorer(self, references: References) -> TER:
        return TER()

    def remarks(self, references: References) -> list[str]:
        if has_hardly_spaces(line for lines in references.text for line in lines):
            return [
                "warning: TER is of what is between spaces, and the references have hardly a space: go by chrF++ "
                "(--metrics chrf)"
            ]
        return []


register_metric(ChrF())
register_metric(TranslationEditRate())
