"""BLEU from the statistics of its sentences, against sacrebleu's corpus score and against cases computed by hand."""

from __future__ import annotations

import math
import random

import pytest
from sacrebleu.metrics import BLEU

from fairseq_plugins.scoring.bleu import bleu, score_of_statistics, sentence_bleu, sentence_statistics


def test_statistics_by_hand() -> None:
    # "the" counts once, as often as the reference has it; of two references of lengths 3 and 6 the closest is 3.
    references = [["the cat sat"], ["on a mat sat the cat"]]
    assert sentence_statistics(bleu(), ["the the cat sat"], references).tolist() == [[4, 3, 3, 2, 1, 0, 4, 3, 2, 1]]
    assert sentence_statistics(bleu(), [""], [["a b"]]).tolist() == [[0, 2, 0, 0, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("tokenize", ["none", "13a"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_sum_of_statistics_is_corpus_bleu(tokenize: str, lowercase: bool) -> None:
    generator = random.Random(1)
    words = ["The", "the", "man,", "U.S."]
    hypotheses, *references = (
        [" ".join(generator.choices(words, k=generator.randint(0, 20))) for _ in range(50)] for _ in range(3)
    )
    metric = bleu(tokenize, lowercase)
    statistics = sentence_statistics(metric, hypotheses, references)
    score = score_of_statistics(metric, statistics.sum(axis=0))
    smoothing = "none" if tokenize == "none" else "exp"
    peer = BLEU(tokenize=tokenize, lowercase=lowercase, smooth_method=smoothing, force=True)
    assert score == pytest.approx(peer.corpus_score(hypotheses, references).score, abs=1e-12)
    assert 1 < score < 99


def test_tokenised_bleu_is_not_smoothed() -> None:
    # No 4-gram matches.
    for tokenize, smoothed in ("none", False), ("13a", True):
        metric = bleu(tokenize)
        score = score_of_statistics(metric, sentence_statistics(metric, ["a b c x"], [["a b c d"]]).sum(axis=0))
        assert (score > 0) == smoothed


def test_unknown_tokenizer() -> None:
    with pytest.raises(ValueError, match="tokenize is '14a', but may be none or 13a"):
        bleu("14a")


def test_sentence_bleu_by_hand() -> None:
    scores = sentence_bleu(["a b c d", "", "a b", "a b c d"], [["a b c d", "a", "a b c", "a b x d"]])
    # Of two words there are orders 1 and 2, both whole; the length is 2 of 3. Last: 3/4, 1/3, and none of 2 trigrams
    # and of one 4-gram, which exponential smoothing counts as 1/2 of one, then 1/4.
    last = 100 * (3 / 4 * 1 / 3 * (1 / 2) / 2 * (1 / 4) / 1) ** (1 / 4)
    assert scores.tolist() == pytest.approx([100, 0, 100 * math.exp(1 - 3 / 2), last])
