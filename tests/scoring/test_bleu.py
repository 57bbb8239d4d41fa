"""BLEU from the statistics of its sentences, against sacrebleu's corpus score and against cases computed by hand."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from sacrebleu.metrics import BLEU

from fairseq_plugins.scoring.bleu import Bleu, bleu, score_of_statistics, sentence_bleu, sentence_statistics
from fairseq_plugins.scoring.metrics import Outputs, References


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


def scores_of(references: References, tokens: Sequence[str], text: Sequence[str]) -> dict[str, Any]:
    """What results.json says of a translation."""
    return Bleu().scores(Outputs(tokens, text), references)


def multi_bleu(hypotheses: list[str], *references: list[str]) -> float:
    """BLEU as Moses' multi-bleu.perl and NIST's mteval define it: clipped counts of the whole corpus, unsmoothed; with
    several references the largest count of each n-gram, and the length that is closest (of two the shorter)."""
    correct, total = [0] * 4, [0] * 4
    lengths = [0, 0]
    for hypothesis, *sentences in zip(hypotheses, *references, strict=True):
        words, allowed_words = hypothesis.split(), [sentence.split() for sentence in sentences]
        lengths[0] += len(words)
        lengths[1] += min(map(len, allowed_words), key=lambda length: (abs(length - len(words)), length))
        for n in range(1, 5):
            ngrams, *allowed = (
                Counter(zip(*(side[k:] for k in range(n)), strict=False)) for side in (words, *allowed_words)
            )
            correct[n - 1] += sum(
                min(count, max(counter[ngram] for counter in allowed)) for ngram, count in ngrams.items()
            )
            total[n - 1] += sum(ngrams.values())
    if 0 in correct:
        return 0.0
    brevity = min(1.0, math.exp(1 - lengths[1] / lengths[0]))
    return 100 * brevity * math.exp(sum(math.log(c / t) for c, t in zip(correct, total, strict=True)) / 4)


def corrupted(sentence: str, generator: random.Random) -> str:
    words = [word for word in sentence.split() if generator.random() > 0.15]
    return " ".join(word if generator.random() > 0.1 else "x" for word in words)


@pytest.mark.parametrize("seed", range(5))
def test_tokenised_bleu_is_multi_bleu(seed: int) -> None:
    generator = random.Random(seed)
    words = ["the", "a", "man", "&apos;s", "@-@", ",", "U.S.", "3.5", "x-y", "("]
    references = [" ".join(generator.choices(words, k=generator.randint(1, 15))) for _ in range(60)]
    translated = [corrupted(reference, generator) for reference in references]
    scores = scores_of(References([references], [references], False), translated, translated)
    assert scores["bleu_tokenized"] == pytest.approx(multi_bleu(translated, references), abs=0.005)
    assert 20 < scores["bleu_tokenized"] < 95
    assert "tok:none" in scores["bleu_tokenized_signature"]
    assert "smooth:none" in scores["bleu_tokenized_signature"]
    assert "tok:13a" in scores["sacrebleu_signature"]


@pytest.mark.parametrize("seed", range(5))
def test_several_references_count_as_in_mteval(seed: int) -> None:
    generator = random.Random(seed)
    words = ["the", "a", "man", "of", "China", ",", "said", "on", "Monday"]
    original = [" ".join(generator.choices(words, k=generator.randint(4, 15))) for _ in range(60)]
    references = [[corrupted(sentence, generator) for sentence in original] for _ in range(4)]
    translated = [corrupted(sentence, generator) for sentence in original]
    lowered = [[line.lower() for line in lines] for lines in references]
    scores = scores_of(References(lowered, references, True), [t.lower() for t in translated], translated)
    expected = multi_bleu([t.lower() for t in translated], *lowered)
    assert scores["bleu_tokenized"] == pytest.approx(expected, abs=0.005)
    assert scores["bleu_sacrebleu"] == pytest.approx(expected, abs=0.005), "these texts are their own tokens"
    assert scores["sacrebleu_signature"].startswith("nrefs:4|case:lc|")
    assert expected > multi_bleu([t.lower() for t in translated], lowered[0]) + 5


def test_without_a_matching_4_gram_tokenised_bleu_is_zero() -> None:
    references = References([["a b c d"]], [["a b c d"]])
    assert scores_of(references, ["a b c e"], ["a b c e"])["bleu_tokenized"] == 0


def test_case_counts_only_where_the_corpus_has_it() -> None:
    tokens, text = ["the man reads a book ."], ["The man reads a book."]
    hypothesis = ["the man reads a book ."], ["the man reads a book."]
    lower = scores_of(References([tokens], [text], True), *hypothesis)
    assert lower["bleu_sacrebleu"] == pytest.approx(100)
    assert "case:lc" in lower["sacrebleu_signature"]
    mixed = scores_of(References([tokens], [text], False), *hypothesis)
    assert mixed["bleu_sacrebleu"] < 99
    assert "case:mixed" in mixed["sacrebleu_signature"]
