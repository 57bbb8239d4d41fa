"""ROUGE against cases computed by hand, and against rouge-score itself."""

from __future__ import annotations

import random
import unicodedata

import pytest
from rouge_score.rouge_scorer import RougeScorer as Peer

from fairseq_plugins.errors import InputError
from fairseq_plugins.scoring.metrics import Outputs, References, metric_named
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
    assert f1("cafe", "café", tokenizer="rouge-score") == (0.0, 0.0, 0.0), "the accent cuts the word: 'caf'"
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


# Other languages than English


def counted(hypothesis: str, reference: str, language: str) -> dict[str, float]:
    """ROUGE-1, -2 and -L of one sentence, as an evaluation has them."""
    scores = Rouge().scores(
        Outputs([hypothesis], [hypothesis]), References([[reference]], [[reference]], language=language)
    )
    assert "|tok:nfc,lc,unicode-words,unspaced-characters|" in scores["rouge_signature"]
    return {name: scores[name] for name in ("rouge1", "rouge2", "rougeL")}


def f(matching: int, of_hypothesis: int, of_reference: int) -> float:
    """F1 in percent of a number of matches."""
    return round(200 * matching / (of_hypothesis + of_reference), 2)


@pytest.mark.parametrize(
    ("language", "hypothesis", "reference", "words", "pairs", "longest"),
    [
        # पुलिस ने and को match, and the order of all three: 3 of 4 and 5 words; of pairs पुलिस ने alone.
        ("hi", "पुलिस ने उसे को।", "पुलिस ने दो चोरों को पकड़ा", (3, 4, 6), (1, 3, 5), (3, 4, 6)),
        # Vowels are marks: كَتَبَ is one word. It and الدَّرْسَ match; of pairs none.
        ("ar", "كَتَبَ المُعَلِّمُ الدَّرْسَ", "كَتَبَ الوَلَدُ الدَّرْسَ اليَوْمَ.", (2, 3, 4), (0, 2, 3), (2, 3, 4)),
        # Written with combining diaeresis here and composed there; "größe" and "über" match in this order.
        ("de", "Gro\u0308ße u\u0308ber alles", "größe geht über", (2, 3, 3), (0, 2, 2), (2, 3, 3)),
        # Seven characters with their marks, ส วั ส ดี ค รั บ, and six, ส วั ส ดี ค่ ะ: four match, in pairs three.
        ("th", "สวัสดีครับ", "สวัสดีค่ะ", (4, 7, 6), (3, 6, 5), (4, 7, 6)),
        # 警察抓住小偷 and 警察昨天抓住了两名小偷: six of 6 and 11 characters; pairs 警察, 抓住, 小偷.
        ("zh", "警察抓住小偷", "警察昨天抓住了两名小偷", (6, 6, 11), (3, 5, 10), (6, 6, 11)),
        # 경찰이 and 잡았다 match, of three and four words; no pair of them.
        ("ko", "경찰이 도둑을 잡았다", "경찰이 어제 강도를 잡았다.", (2, 3, 4), (0, 2, 3), (2, 3, 4)),
        # Latin words and numbers among Chinese are words: 他 在 google 工 作 3 年, 她 在 google 工 作.
        ("zh", "他在Google工作3年", "她在 google 工作。", (4, 7, 5), (3, 6, 4), (4, 7, 5)),
        # コ ー ヒ ー を 飲 む, 茶 を 飲 む: three match.
        ("ja", "コーヒーを飲む", "茶を飲む", (3, 7, 4), (2, 6, 3), (3, 7, 4)),
        # ຂອບ ໃຈ by characters: ຂ ອ ບ ໃ ຈ, and with ຫ ຼ າ ຍ.
        ("lo", "ຂອບໃຈ", "ຂອບໃຈເດີ", (5, 5, 7), (4, 4, 6), (5, 5, 7)),
        # ភា សា, and ភា សា ខ្មែ រ.
        ("km", "ភាសា", "ភាសា\u200bខ្មែរ", (2, 2, 4), (1, 1, 3), (2, 2, 4)),
    ],
)
def test_partial_overlaps_by_hand(
    language: str,
    hypothesis: str,
    reference: str,
    words: tuple[int, int, int],
    pairs: tuple[int, int, int],
    longest: tuple[int, int, int],
) -> None:
    expected = {"rouge1": f(*words), "rouge2": f(*pairs), "rougeL": f(*longest)}
    assert counted(hypothesis, reference, language) == expected
    # Without a language the letters of the references decide.
    if language != "de":
        assert counted(hypothesis, reference, "sum") == expected
    composed = unicodedata.normalize("NFD", hypothesis)
    assert counted(composed, reference, language) == expected


def test_english_is_that_of_rouge_score_whatever_letters_occur() -> None:
    hypotheses, references = ["Größe naïve 警察 café", "Die Größe"], ["Größe Naïve 警察 cafe über", "die größe"]
    peer = Peer(["rouge1", "rouge2", "rougeL"])
    rows = [peer.score(reference, line) for line, reference in zip(hypotheses, references, strict=True)]
    for language in ("en", "eng", "EN_us"):
        metric, lines = Rouge(), References([references], [references], language=language)
        found = metric.statistics(Outputs(hypotheses, hypotheses), lines)
        assert found[:, :3].tolist() == [[100 * row[name].fmeasure for name in row] for row in rows]
        assert "|tok:lc,a-z0-9|" in metric.signature(metric.main, lines)


def remark(language: str, *lines: str, tokenizer: str | None = None) -> str:
    """The one line that says what is counted, and why."""
    (line,) = Rouge().tokenized_by(tokenizer).remarks(References([lines], [lines], language=language))
    return line


def test_one_line_says_why() -> None:
    english, all_letters = "ROUGE counts runs of a-z and 0-9, as rouge-score does, since ", "ROUGE counts words of all"
    assert remark("eng", "größe").startswith(f"{english}the target language is 'eng' (--rouge-tokenize ")
    assert remark("de", "size").startswith(all_letters) and "since the target language is 'de'" in remark("de", "size")
    # Nine letters of ten are ASCII, then nine of eleven: a decomposed letter is one, and not ASCII.
    nine = "abcdefghi"
    assert remark("sum", f"{nine}ü 17").startswith(english + "'sum' is no language, and nine tenths")
    assert remark("sum", f"{nine}u\u0308u\u0308").startswith(all_letters)
    assert "since 'sum' is no language, and less than nine tenths" in remark("sum", "ひらがな")
    assert "since the target language is not known" in remark("", "x")
    assert remark("sum", "").startswith(english)
    assert "since --rouge-tokenize says so" in remark("en", "x", tokenizer="unicode")
    assert remark("en", "x", tokenizer="unicode").startswith(all_letters)


def test_the_tokenizer_can_be_named() -> None:
    references = References([["größe"]], [["größe"]], language="de")
    outputs = Outputs(["gr e"], ["gr e"])
    assert Rouge().scores(outputs, references)["rouge1"] == 0
    scores = Rouge().tokenized_by("rouge-score").scores(outputs, references)
    assert scores["rouge1"] == 100 and "|tok:lc,a-z0-9|" in scores["rouge_signature"]
    assert (
        Rouge().tokenized_by("rouge-score").only("rougeL").signature(Rouge().main, references)
        == (scores["rouge_signature"])
    )
    with pytest.raises(InputError, match="rouge-tokenize unicod: choose one of rouge-score, unicode; did you mean"):
        Rouge().tokenized_by("unicod")


def test_stemming_of_words_of_all_letters() -> None:
    assert f1("Größe falling", "größe falls", tokenizer="unicode", stemmer=True) == (100.0, 100.0, 100.0)
    assert f1("Größe falling", "größe falls", tokenizer="unicode") == (50.0, 0.0, 50.0)


SUMMARIES = ["the cat sat . <n> a dog ran away .", "one two three four"]
TARGETS = ["a dog ran . <n> the cat sat down .", "one three two four"]


def test_rouge_lsum_equals_rouge_score() -> None:
    peer = Peer(["rouge1", "rougeL", "rougeLsum"])
    lines = [[text.replace(" <n> ", "\n") for text in texts] for texts in (SUMMARIES, TARGETS)]
    expected = [peer.score(target, summary) for summary, target in zip(*lines, strict=True)]
    references = References([TARGETS], [TARGETS], language="en")
    for name, key in (("rouge", "rouge1"), ("rouge", "rougeL"), ("rouge_lsum", "rougeLsum")):
        metric = metric_named(name).only(key)
        rows = metric.statistics(Outputs(SUMMARIES, SUMMARIES), references)
        assert rows[:, 0] == pytest.approx([100 * score[key].fmeasure for score in expected])
    assert expected[0]["rougeLsum"].fmeasure > expected[0]["rougeL"].fmeasure


@pytest.mark.parametrize("mark", ["<n>", "< n >", "\n"])
def test_the_mark_between_sentences_is_no_word(mark: str) -> None:
    texts = [f"Cats sleep. {mark} Dogs run."], [["Cats run. Dogs sleep."]]
    parts = [f"Cats sleep. {mark} Dogs run."], [[f"Cats run. {mark} Dogs sleep."]]
    assert sentence_rouge(*texts)[0, 0] == sentence_rouge(*parts)[0, 0] == 100


def test_what_is_said_of_several_sentences() -> None:
    several, single = (References([lines], [lines], language="en") for lines in (TARGETS, ["one line"]))
    rouge, of_sentences = metric_named("rouge"), metric_named("rouge_lsum")
    assert "the metric rouge_lsum does not" in rouge.remarks(several)[-1] and len(rouge.remarks(single)) == 1
    assert "it equals ROUGE-L" in of_sentences.remarks(single)[-1] and len(of_sentences.remarks(several)) == 1
    scores = of_sentences.scores(Outputs(SUMMARIES, SUMMARIES), several)
    assert set(scores) == {"rougeLsum", "rouge_lsum_intervals", "rougeLsum_signature"}
    assert "|f1|" in scores["rougeLsum_signature"]
