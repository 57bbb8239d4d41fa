"""Scorers for ``--scoring`` of fairseq-generate that fairseq does not have; importing this file registers them."""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import math
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer
from omegaconf import II
from omegaconf.errors import InterpolationResolutionError

from .rouge import RougeScores, corpus_rouge, tokenizer_remark
from .rouge_tokens import TOKENIZERS, choose_tokenizer


@dataclass
class RougeScorerConfig(FairseqDataclass):  # type: ignore[misc]  # fairseq has no types
    """The options of ``--scoring rouge``."""

    rouge_stemmer: bool = field(default=False, metadata={"help": "stem words before ROUGE compares them (Porter)"})
    rouge_tokenize: Optional[ChoiceEnum(list(TOKENIZERS))] = field(  # type: ignore[valid-type]  # fairseq makes the class  # noqa: UP045
        default=None, metadata={"help": "what ROUGE counts; default: as the target language wants it"}
    )
    rouge_language: Optional[str] = II("task.target_lang")  # noqa: UP045


@register_scorer("rouge", dataclass=RougeScorerConfig)
class RougeScorer(BaseScorer):  # type: ignore[misc]  # fairseq has no types
    """``--scoring rouge``: collects sentences from fairseq-generate, which knows one reference of each."""

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        self.stemmer = cfg.rouge_stemmer
        self.tokenizer = getattr(cfg, "rouge_tokenize", None)
        try:
            self.language = getattr(cfg, "rouge_language", None) or ""
        except InterpolationResolutionError:  # of a task without a target language
            self.language = ""

    def score(self) -> float:
        """ROUGE-L F1 in percent."""
        return self._corpus().scores["rougeL"].score

    def result_string(self) -> str:
        return f"{self._corpus()}; {tokenizer_remark(*self._choice())}"

    def _choice(self) -> tuple[str, str]:
        """The tokenizer, and why it is this one."""
        if self.tokenizer is not None:
            return str(self.tokenizer), "--rouge-tokenize says so"
        return choose_tokenizer(self.language, [self.ref])

    def _corpus(self) -> RougeScores:
        return corpus_rouge(self.pred, [self.ref], self.stemmer, tokenizer=self._choice()[0])


@dataclass
class NoScorerConfig(FairseqDataclass):  # type: ignore[misc]  # fairseq has no types
    """``--scoring unscored`` has no options."""


@register_scorer("unscored", dataclass=NoScorerConfig)
class NoScorer(BaseScorer):  # type: ignore[misc]  # fairseq has no types
    """``--scoring unscored``: for translations in subwords, of which any score would be wrong."""

    def add_string(self, ref: str, pred: str) -> None:
        """Leaves the sentence alone."""

    def score(self) -> float:
        """Not a number."""
        return math.nan

    def result_string(self) -> str:
        return "not scored here, in subwords; 'fairseq-plugins evaluate' joins them and scores the text"
