"""Answers' scores on cases by hand: what the rules of pycocoevalcap, nltk and SQuAD's own script come to."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_plugins.errors import InputError
from fairseq_plugins.scoring import answers
from fairseq_plugins.scoring.answers import answer_tokens, meteor
from fairseq_plugins.scoring.metrics import Outputs, References, metric_named
from fairseq_plugins.scoring.predictions import outputs_of_answers, read_answers, write_answers
from fairseq_plugins.scoring.rouge_l import longest_common_subsequence, rouge_l


def scores(name: str, outputs: list[str], *references: list[str]) -> dict:
    return metric_named(name).scores(Outputs(outputs, outputs), References(references, references))


def test_bleu_over_all_answers() -> None:
    """Corpus BLEU with the closest reference length: 7 of 7 words, 4 of 5 pairs, 2 of 3 triples, 1 of 2 of four."""
    outputs = ["The old king's daughter.", "a frog"]
    first, second = ["the king's old daughter", "the green frog"], ["An old king's daughter", "a frog prince"]
    found = scores("answers", outputs, first, second)
    # the old king 's daughter | a frog: of one the closest reference has 5 words, of the other 3.
    assert found["answer_bleu1"] == round(100 * math.exp(1 - 8 / 7), 2)
    # old king / king 's / 's daughter of 4, a frog; old king 's / king 's daughter of 3; old king 's daughter of 2.
    product = (7 / 7) * (4 / 5) * (2 / 3) * (1 / 2)
    assert found["answer_bleu4"] == round(100 * math.exp(1 - 8 / 7) * product**0.25, 2)


def test_figures_of_pycocoevalcap() -> None:
    """What its version 1.2 gives for these sixty answers of random words."""
    words = "the old king gave his daughter to a frog and went home".split()
    generator = random.Random(1)
    outputs, *references = (
        [" ".join(generator.choice(words) for _ in range(generator.randint(1, 9))) for _ in range(60)] for _ in range(3)
    )
    outputs[::3] = [references[number % 2][number] for number in range(0, 60, 3)]
    found = scores("answers", outputs, *references)
    assert (found["answer_bleu1"], found["answer_bleu4"], found["answer_rougeL"]) == (60.69, 35.15, 52.37)


def test_rouge_l_takes_the_best_precision_and_the_best_recall() -> None:
    """As pycocoevalcap has it: precision of one reference with recall of another."""
    answer = "in the wood".split()
    references = [["in", "the", "dark", "wood", "of", "firs"], ["wood"]]
    precision, recall = 3 / 3, 1 / 1
    assert rouge_l(answer, references) == pytest.approx((1 + 1.44) * precision * recall / (recall + 1.44 * precision))
    assert rouge_l(answer, references[:1]) == pytest.approx(2.44 * 0.5 / (0.5 + 1.44))
    assert rouge_l([], references) == 0 == rouge_l(["sea"], references)


@given(*[st.lists(st.sampled_from("abc"), max_size=8)] * 2)
def test_longest_common_subsequence(first: list[str], second: list[str]) -> None:
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first, 1):
        for j, b in enumerate(second, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if a == b else max(table[i - 1][j], table[i][j - 1])
    assert longest_common_subsequence(first, second) == table[-1][-1]


def test_meteor_by_form_and_stem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without WordNet: walked and walks have one stem, hut and cottage have nothing in common."""
    monkeypatch.setattr(answers, "_wordnet", answers._NoWordNet)
    # Both words match in one chunk: F is 1, the penalty 0.5 * (1 / 2) ** 3.
    assert meteor(["she", "walked"], [["she", "walks"]]) == pytest.approx(1 - 0.5 / 8)
    assert meteor(["hut"], [["cottage"], ["hut"]]) == pytest.approx(0.5)
    assert meteor(["hut"], [["cottage"]]) == 0
    metric = metric_named("answers")
    assert "|meteor:exact-stem,0.9" in metric.signature(metric.columns[2], References([["a"]], [["a"]]))


def test_words_of_answers() -> None:
    assert answer_tokens("\"The King's daughter,\" (said he) didn't!") == ["the", "king", "'s", "daughter"] + [
        "said",
        "he",
        "did",
        "n't",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He was king. He died.", "he was king he died"),
        ("in the U.S.", "in the u.s."),
        ("the U.S. army", "the u.s. army"),
        ("“so” — yes – no…", "so yes no"),
        ("the king’s", "the king 's"),
        ("", ""),
        (".", ""),
    ],
)
def test_words_as_pycocoevalcap_has_them(text: str, words: str) -> None:
    """By its version 1.2, which calls Stanford's tokenizer."""
    assert answer_tokens(text) == words.split()


def test_squad_by_its_script() -> None:
    """Case, punctuation and articles do not count; the best answer does."""
    outputs = ["The Denver Broncos!", "in 1912", "an owl"]
    found = scores("squad", outputs, ["Broncos", "the year 1912", "the old owl"], ["Denver Broncos", "1912", "owl"])
    assert found["squad_exact_match"] == round(200 / 3, 2)
    # in 1912 against 1912: 1 word of 2 and 1 in common; against the other 1 of 2 and 2.
    assert found["squad_f1"] == round(100 * (1 + 2 / 3 + 1) / 3, 2)


def test_the_table_of_answers(tmp_path: Path) -> None:
    outputs = outputs_of_answers([("3 9\tan owl", [-0.5]), ("0 1\ta\tb", [-1.0])])
    write_answers(tmp_path / "answers.tsv", outputs)
    assert read_answers(tmp_path / "answers.tsv") == outputs
    assert outputs.text == ["an owl", "a\tb"] and outputs.tokens == ["3 9", "0 1"]
    (tmp_path / "answers.tsv").write_text("3\t9\t-0.5\tan owl\n3\tan owl\n")
    with pytest.raises(InputError, match="answers.tsv, line 2: no place, number and answer; evaluate"):
        read_answers(tmp_path / "answers.tsv")


def test_nothing_answered() -> None:
    assert scores("answers", [""], ["a frog"])["answer_rougeL"] == 0
    assert scores("squad", [""], ["a frog"])["squad_f1"] == 0
