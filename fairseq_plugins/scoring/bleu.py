"""BLEU as this project reports it, and the counts of n-grams that it is made of, for every sentence.

'tokenised BLEU' (``none``) is that of Moses' multi-bleu.perl on the tokens, which the papers report: sacrebleu without
tokenisation and smoothing. 'sacreBLEU' (``13a``) is that of the text, as sacrebleu computes it by default.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics import BLEU

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
