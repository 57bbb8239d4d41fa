"""BLEU as this project reports it, and the counts of n-grams that it is made of, for every sentence.

'tokenised BLEU' (``none``) is that of Moses' multi-bleu.perl on the tokens, which the papers report: sacrebleu without
tokenisation and smoothing. 'sacreBLEU' (``13a``) is that of the text, as sacrebleu computes it by default. Both use all
of several references, with the reference length that is closest to a hypothesis' own, as mteval does.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache

import numpy as np
from sacrebleu.metrics import BLEU

from .metrics import Column, Metric, Outputs, References, register_metric

TOKENIZERS = ("none", "13a")


def bleu(tokenize: str = "none", lowercase: bool = False) -> BLEU:
    """The metric of one of the two figures.

    Args:
        tokenize: ``none`` for tokenised BLEU, ``13a`` for sacreBLEU.
        lowercase: both sides.

    Raises:
        ValueError: another tokenizer.
    """
    if tokenize not in TOKENIZERS:
        raise ValueError(f"tokenize is {tokenize!r}, but may be {' or '.join(TOKENIZERS)}")
    if tokenize == "none":
        # Tokens are meant to look tokenised: sacrebleu would warn of them.
        return BLEU(tokenize="none", smooth_method="none", force=True, lowercase=lowercase)
    return BLEU(lowercase=lowercase)


def sentence_statistics(metric: BLEU, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
    """What corpus BLEU sums over the sentences.

    Args:
        metric: of :func:`bleu`.
        hypotheses: N sentences.
        references: one or several for each: lists of N.

    Returns:
        (N, 10) integers: length in tokens, length of the closest reference, matching n-grams of orders 1 to 4, all
        n-grams of orders 1 to 4.
    """
    return np.array(metric._extract_corpus_statistics(hypotheses, references), dtype=np.int64)


def score_of_statistics(metric: BLEU, summed: np.ndarray) -> float:
    """BLEU in percent of what :func:`sentence_statistics` gives, summed over some sentences: (10,) integers."""
    return float(metric._compute_score_from_stats(summed.tolist()).score)


def sentence_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str = "none", lowercase: bool = False
) -> np.ndarray:
    """BLEU in percent of every sentence by itself, (N,): sacrebleu's, smoothed, orders longer than it left out.

    Args: as for :func:`sentence_statistics` and :func:`bleu`.
    """
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True, effective_order=True)
    pairs = zip(hypotheses, *references, strict=True)
    return np.array([metric.sentence_score(hypothesis, targets).score for hypothesis, *targets in pairs])


TOKENIZED = Column(
    "bleu_tokenized", "BLEU (tokenised)", "BLEU", signature="bleu_tokenized_signature", paper="bleu", largest=100
)
SACREBLEU = Column("bleu_sacrebleu", "sacreBLEU", "BLEU", signature="sacrebleu_signature", largest=100)
_COLUMNS = dict(zip(TOKENIZERS, (TOKENIZED, SACREBLEU), strict=True))


class Bleu(Metric):
    """Both figures of translations: of tokens, which the papers report, and of text."""

    name = "bleu"
    label = "BLEU"
    columns = (TOKENIZED, SACREBLEU)
    options = {
        "tokenize": {
            "choices": TOKENIZERS,
            "help": "none (default): BLEU of the tokens as they are; 13a: sacreBLEU of text",
        },
        "lowercase": {"action": "store_true", "help": "BLEU without regard to case"},
    }

    @property
    def title(self) -> str:
        return "tokenised BLEU"

    @property
    def sentence_label(self) -> str:
        return "sentence BLEU"

    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        return np.concatenate(
            [
                sentence_statistics(bleu(tokenize, references.lowercase), *_read(tokenize, outputs, references))
                for tokenize in self._tokenizers
            ],
            axis=1,
        )

    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        parts = summed.reshape(len(self.columns), -1)
        return np.array(
            [score_of_statistics(_scorer(name), part) for name, part in zip(self._tokenizers, parts, strict=True)]
        )

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        [tokenize] = (name for name, own in _COLUMNS.items() if own == column)
        scorer = bleu(tokenize, references.lowercase)
        scorer.num_refs = len(references.text)
        signature = scorer.get_signature()
        for part in bootstrap.split("|") if bootstrap else ():
            signature.update(*part.split(":"))
        return str(signature)

    def sentence_scores(self, outputs: Outputs, references: References) -> np.ndarray:
        [tokenize, *_] = self._tokenizers
        return sentence_bleu(*_read(tokenize, outputs, references), tokenize, references.lowercase)

    def configured(self, arguments: argparse.Namespace) -> Metric:
        return self.only(_COLUMNS[arguments.tokenize or "none"].key)

    @property
    def _tokenizers(self) -> list[str]:
        return [tokenize for tokenize, column in _COLUMNS.items() if column in self.columns]


def _read(tokenize: str, outputs: Outputs, references: References) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The side of outputs and references that one of the figures is of."""
    return (outputs.tokens, references.tokens) if tokenize == "none" else (outputs.text, references.text)


@cache
def _scorer(tokenize: str) -> BLEU:
    """Of sums alone: case is gone from them."""
    return bleu(tokenize)


register_metric(Bleu())
