"""Scores: equal to their definitions, and of every sentence."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.commands import PreparedData
from fairseq_plugins.experiments.evaluate import References, decoding_speed, hypotheses


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
    scores = References([references], [references], lowercase=False).scores(translated, translated)
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
    scores = References(lowered, references, lowercase=True).scores([t.lower() for t in translated], translated)
    expected = multi_bleu([t.lower() for t in translated], *lowered)
    assert scores["bleu_tokenized"] == pytest.approx(expected, abs=0.005)
    assert scores["bleu_sacrebleu"] == pytest.approx(expected, abs=0.005), "these texts are their own tokens"
    assert scores["sacrebleu_signature"].startswith("nrefs:4|case:lc|")
    assert expected > multi_bleu([t.lower() for t in translated], lowered[0]) + 5


def test_all_references_of_a_set_are_read(data: PreparedData) -> None:
    facts = {"name": "nist04", "references": 3}
    PairsPreparation("de", "en", lowercase=True, splits={"test": facts, "valid": {"name": "nist03"}}).save(data.folder)
    data = PreparedData.load(data.folder)
    assert data.preparation.split_of("nist04") == data.preparation.split_of("test") == "test"
    lines = {f"{folder}_test{ref}": f"{folder} {ref}" for folder in ("raw", "tokens") for ref in ("", ".ref1", ".ref2")}
    write_sets(data, **lines, tokens_valid="x")
    references = References.load(data, "test")
    assert references.tokens == [["tokens "], ["tokens .ref1"], ["tokens .ref2"]]
    assert references.text == [["raw "], ["raw .ref1"], ["raw .ref2"]]
    with pytest.raises(InputError, match="the prepared sets are nist04, nist03"):
        References.load(data, "nist05")


def test_without_a_matching_4_gram_tokenised_bleu_is_zero() -> None:
    references = References([["a b c d"]], [["a b c d"]], lowercase=False)
    assert references.scores(["a b c e"], ["a b c e"])["bleu_tokenized"] == 0


def test_case_counts_only_where_the_corpus_has_it() -> None:
    tokens, text = ["the man reads a book ."], ["The man reads a book."]
    hypothesis = ["the man reads a book ."], ["the man reads a book."]
    lower = References([tokens], [text], lowercase=True).scores(*hypothesis)
    assert lower["bleu_sacrebleu"] == pytest.approx(100)
    assert "case:lc" in lower["sacrebleu_signature"]
    mixed = References([tokens], [text], lowercase=False).scores(*hypothesis)
    assert mixed["bleu_sacrebleu"] < 99
    assert "case:mixed" in mixed["sacrebleu_signature"]


def write_sets(data: PreparedData, **files: str) -> None:
    for name, line in files.items():
        folder, subset = name.split("_")
        (data.folder / folder).mkdir(exist_ok=True)
        (data.folder / folder / f"{subset}.en").write_text(line + "\n", encoding="utf-8")


def test_references_are_raw_text_where_there_is_some(data: PreparedData) -> None:
    write_sets(data, tokens_test="it &apos;s here .", raw_test="It's here.", tokens_valid="it &apos;s there .")
    assert References.load(data, "test").text == [["It's here."]]
    assert References.load(data, "valid").text == [["it's there."]]
    assert References.load(data, "valid").tokens == [["it &apos;s there ."]]
    with pytest.raises(InputError, match="test2.en: no such file; the prepared sets are test, valid"):
        References.load(data, "test2")


LOG = [
    "2026-01-01 | INFO | something",
    "S-1\tquelle",
    "H-1\t-0.5\t▁b est",
    "D-1\t-0.5\tb est",
    "D-1\t-0.9\tsecond best",
    "D-0\t-0.1\ta",
    "D-2\t-0.1\t",
]


def test_hypotheses_stand_in_the_order_of_the_set() -> None:
    assert hypotheses(LOG, 3, "log") == ["a", "b est", ""]


@pytest.mark.parametrize(("count", "first"), [(4, "; the first missing is sentence 4"), (2, "")])
def test_every_sentence_is_scored(count: int, first: str) -> None:
    with pytest.raises(InputError) as raised:
        hypotheses(LOG, count, "log")
    assert str(raised.value) == f"log: 3 sentences were translated, but there are {count}{first}"


def test_decoding_speed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "D-0\t-1\tTranslated words\n"
        "INFO:fairseq_cli.generate:Translated 1,000 sentences (9 tokens) in 12.5s (80.00 sentences/s, 7 tokens/s)\n",
        encoding="utf-8",
    )
    assert decoding_speed(log) == 80.0


def test_preparation_decides_about_lower_case(data: PreparedData) -> None:
    write_sets(data, tokens_test="a")
    assert References.load(data, "test").lowercase
    PairsPreparation(source_lang="de", target_lang="en").save(data.folder)
    assert not References.load(PreparedData.load(data.folder), "test").lowercase


def test_headlines_are_scored_by_rouge_against_several_references() -> None:
    text = [["police kill gunman", "x"], ["gunman dies", "tokyo stocks rise"]]
    references = References(tokens=text, text=text, lowercase=False, metric="rouge")
    hypotheses = ["police kill gunman", "tokyo stocks rise"]
    scores = references.scores(hypotheses, hypotheses)
    assert (scores["rouge1"], scores["rouge2"], scores["rougeL"]) == (100, 100, 100)
    assert scores["rouge_signature"].startswith("nrefs:2|f1|stem:no")
    assert scores["rouge_intervals"]["ROUGE-1"] == [100, 100]
    alone = References(tokens=text[:1], text=text[:1], lowercase=False, metric="rouge").scores(hypotheses, hypotheses)
    assert alone["rouge1"] == 50
