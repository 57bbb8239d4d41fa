"""ROUGE against cases computed by hand, and against rouge-score itself."""

from __future__ import annotations

import random

import pytest
from rouge_score.rouge_scorer import RougeScorer as Peer

from fairseq_plugins.scoring.metrics import Outputs, References
from fairseq_plugins.scoring.rouge import Rouge, corpus_rouge, sentence_rouge, signature


def f1(hypothesis: str, *references: str, **options) -> tuple[float, ...]:
    scores = corpus_rouge([hypothesis], [[reference] for reference in references], **options).scores
    return tuple(round(scores[name].score, 4) for name in ("rouge1", "rouge2", "rougeL"))


def test_by_hand() -> None:
    # 5 of 6 words and 6 of 6 match: P 5/6, R 5/6; bigrams "the cat", "on the", "the mat" of 5; longest common 5.
    assert f1("the cat sat on the mat", "the cat is on the mat") == (83.3333, 60.0, 83.3333)
    # P 2/2, R 2/4: F1 2/3; one bigram of 1 and 3: F1 1/2; in order.
    assert f1("police kill", "police kill the gunman") == (66.6667, 50.0, 66.6667)
    # All words, in the opposite order: the longest common subsequence is one word.
    assert f1("c b a", "a b c") == (100.0, 0.0, 33.3333)


def test_empty_sides_score_nothing() -> None:
    assert f1("", "a headline") == f1("a headline", "") == f1("", "") == (0.0, 0.0, 0.0)


def test_only_ascii_letters_and_digits_count() -> None:
    assert f1("# points", "## points") == (100.0, 0.0, 100.0)
    assert f1("#", "#") == (0.0, 0.0, 0.0)
    assert f1("cafe", "café") == (0.0, 0.0, 0.0), "the accent cuts the word: 'caf'"
    assert f1("U.S. STOCKS", "u s stocks") == (100.0, 100.0, 100.0)


def test_the_best_of_several_references_counts() -> None:
    assert f1("a b", "x y", "a b") == (100.0, 100.0, 100.0)
    one, two = f1("a b c d", "a b x x"), f1("a b c d", "a x c d")
    assert f1("a b c d", "a b x x", "a x c d") == tuple(map(max, one, two))


def test_stemming_is_off_unless_asked() -> None:
    assert f1("stocks falling", "stock falls") == (0.0, 0.0, 0.0)
    assert f1("stocks falling", "stock falls", stemmer=True) == (100.0, 100.0, 100.0)


def test_equals_rouge_score() -> None:
    generator = random.Random(1)
    words = ["police", "kill", "#", "unk", "stocks", "rise", "in", "tokyo", "U.S.", "-lrb-"]
    hypotheses, *references = (
        [" ".join(generator.choices(words, k=generator.randint(0, 9))) for _ in range(80)] for _ in range(3)
    )
    found = corpus_rouge(hypotheses, references)
    peer = Peer(["rouge1", "rouge2", "rougeL"])
    rows = [peer.score_multi(targets, h) for h, *targets in zip(hypotheses, *references, strict=True)]
    for name, interval in found.scores.items():
        assert interval.score == pytest.approx(100 * sum(row[name].fmeasure for row in rows) / 80)
        assert interval.low < interval.score < interval.high
    assert found == corpus_rouge(hypotheses, references), "seeded"
    assert found != corpus_rouge(hypotheses, references, seed=1)
    assert found.signature.startswith("nrefs:2|f1|stem:no|tok:lc,a-z0-9|agg:mean|bs:1000|seed:12345|rouge-score:0.")


def test_scores_of_sentences() -> None:
    hypotheses = ["police kill", "c b a", ""]
    references = [["police kill the gunman", "a b c", "x"], ["police", "c b a", "y"]]
    # The first has its best ROUGE-1 and -L against either reference (F1 2/3), its best ROUGE-2 against the first.
    scores = sentence_rouge(hypotheses, references)
    assert scores.tolist() == [pytest.approx([200 / 3, 50, 200 / 3]), [100, 100, 100], [0, 0, 0]]
    whole = corpus_rouge(hypotheses, references)
    assert [interval.score for interval in whole.scores.values()] == pytest.approx(scores.mean(axis=0).tolist())
    assert whole.signature == signature(2, "bs:1000|seed:12345")
    assert "|stem:porter|" in signature(1, "bs:10|seed:1", stemmer=True)


def test_sentences_must_match() -> None:
    with pytest.raises(ValueError, match="2 hypotheses, but references: 2, 1"):
        corpus_rouge(["a", "b"], [["a", "b"], ["a"]])
    with pytest.raises(ValueError, match="0 hypotheses, but references: none"):
        corpus_rouge([], [])


def test_headlines_are_scored_by_rouge_against_several_references() -> None:
    text = [["police kill gunman", "x"], ["gunman dies", "tokyo stocks rise"]]
    references = References(text, text)
    hypotheses = ["police kill gunman", "tokyo stocks rise"]
    scores = Rouge().scores(Outputs(hypotheses, hypotheses), references)
    assert (scores["rouge1"], scores["rouge2"], scores["rougeL"]) == (100, 100, 100)
    assert scores["rouge_signature"].startswith("nrefs:2|f1|stem:no")
    assert scores["rouge_intervals"]["ROUGE-1"] == [100, 100]
    alone = Rouge().scores(Outputs(hypotheses, hypotheses), References(text[:1], text[:1]))
    assert alone["rouge1"] == 50
