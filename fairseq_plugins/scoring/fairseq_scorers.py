"""Scorers for ``--scoring`` of fairseq-generate that fairseq does not have; importing this file registers them."""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import math
from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer

from .rouge import RougeScores, corpus_rouge


@dataclass
class RougeScorerConfig(FairseqDataclass):
    """The options of ``--scoring rouge``."""

    rouge_stemmer: bool = field(default=False, metadata={"help": "stem words before ROUGE compares them (Porter)"})


@register_scorer("rouge", dataclass=RougeScorerConfig)
class RougeScorer(BaseScorer):
    """``--scoring rouge``: collects sentences from fairseq-generate, which knows one reference of each."""

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        self.stemmer = cfg.rouge_stemmer

    def score(self) -> float:
        """ROUGE-L F1 in percent."""
        return self._corpus().scores["rougeL"].score

    def result_string(self) -> str:
        return str(self._corpus())

    def _corpus(self) -> RougeScores:
        return corpus_rouge(self.pred, [self.ref], self.stemmer)


@dataclass
class NoScorerConfig(FairseqDataclass):
    """``--scoring unscored`` has no options."""


@register_scorer("unscored", dataclass=NoScorerConfig)
class NoScorer(BaseScorer):
    """``--scoring unscored``: for translations in subwords, of which any score would be wrong."""

    def add_string(self, ref: str, pred: str) -> None:
        """Leaves the sentence alone."""

    def score(self) -> float:
        """Not a number."""
        return math.nan

    def result_string(self) -> str:
        return "not scored here, in subwords; scripts/evaluate.sh joins them and scores the text"
