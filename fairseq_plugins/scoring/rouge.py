"""ROUGE-1, -2 and -L (Lin, 2004) by the package rouge-score, with confidence intervals and a signature.

As ``--scoring rouge`` of fairseq-generate with one reference, as :func:`corpus_rouge` with several.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer

METRICS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
SAMPLES = 1000
SEED = 12345


class Interval(NamedTuple):
    """An F1 score in percent with its 95 % confidence interval."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class RougeScores:
    """The scores of a corpus.

    Attributes:
        scores: ``rouge1``, ``rouge2``, ``rougeL``.
        signature: how they were computed, in sacreBLEU's manner.
    """

    scores: dict[str, Interval]
    signature: str

    def __str__(self) -> str:
        shown = [f"{METRICS[name]} {s.score:.2f} ({s.low:.2f}-{s.high:.2f})" for name, s in self.scores.items()]
        return f"{', '.join(shown)}; {self.signature}"


def sentence_rouge(hypotheses: Sequence[str], references: Sequence[Sequence[str]], stemmer: bool = False) -> np.ndarray:
    """F1 in percent of every sentence against its best reference: (N, 3), ROUGE-1, -2 and -L.

    Args and raises: as :func:`corpus_rouge`, whose scores are the means of these.
    """
    if not hypotheses or not references or any(len(lines) != len(hypotheses) for lines in references):
        lengths = ", ".join(str(len(lines)) for lines in references)
        raise ValueError(f"{len(hypotheses)} hypotheses, but references: {lengths or 'none'}")
    # Not at the head of the file: it loads nltk, and every command imports this one.
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(METRICS), use_stemmer=stemmer)
    rows = []
    for hypothesis, *targets in zip(hypotheses, *references, strict=True):
        best = scorer.score_multi(targets, hypothesis)
        rows.append([best[name].fmeasure for name in METRICS])
    return 100 * np.array(rows)


def signature(references: int, bootstrap: str, stemmer: bool = False) -> str:
    """How scores were computed, in sacreBLEU's manner.

    Args:
        references: how many each sentence has.
        bootstrap: its samples and seed, as ``bs:1000|seed:12345``.
        stemmer: whether words were stemmed.
    """
    return (
        f"nrefs:{references}|f1|stem:{'porter' if stemmer else 'no'}|tok:lc,a-z0-9|agg:mean|{bootstrap}"
        f"|rouge-score:{importlib.metadata.version('rouge-score')}"
    )


def corpus_rouge(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], stemmer: bool = False, seed: int = SEED
) -> RougeScores:
    """Mean F1 over the sentences, each against its best reference, with bootstrap intervals over sentences.

    rouge-score lower-cases, keeps runs of a-z and 0-9 and drops everything else: ``#`` and letters with accents too. An
    empty side scores 0.

    Args:
        hypotheses: N sentences.
        references: one or several for each: lists of N.
        stemmer: Porter's, which the papers do not use.
        seed: of the bootstrap.

    Raises:
        ValueError: no sentences, or lists of different length.
    """
    values = sentence_rouge(hypotheses, references, stemmer)
    generator = np.random.default_rng(seed)
    samples = [values[generator.integers(len(values), size=len(values))].mean(axis=0) for _ in range(SAMPLES)]
    low, high = np.percentile(samples, [2.5, 97.5], axis=0)
    scores = {
        name: Interval(float(mean), float(low[i]), float(high[i]))
        for i, (name, mean) in enumerate(zip(METRICS, values.mean(axis=0), strict=True))
    }
    return RougeScores(scores, signature(len(references), f"bs:{SAMPLES}|seed:{seed}", stemmer))


@dataclass
class RougeScorerConfig(FairseqDataclass):
    """The options of ``--scoring rouge``."""

    rouge_stemmer: bool = field(default=False, metadata={"help": "stem words before ROUGE compares them (Porter)"})


@register_scorer("rouge", dataclass=RougeScorerConfig)
class RougeScorer(BaseScorer):
    """Collects sentences from fairseq-generate."""

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
