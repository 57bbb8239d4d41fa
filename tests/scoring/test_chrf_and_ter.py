"""chrF++ and TER: sacrebleu's, with intervals and paired tests."""

from __future__ import annotations

import random

import pytest
from sacrebleu.metrics import CHRF, TER
from sacrebleu.significance import PairedTest

from fairseq_plugins.scoring.metrics import Outputs, References, metric_named

WORDS = "der Hund läuft schnell über die alte Brücke am Fluss und bellt laut".split()


def texts(seed: int) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(4, 9))) for _ in range(30)]


def near(lines: list[str], seed: int, share: float) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(word for word in line.split() if generator.random() < share) or "und" for line in lines]


TARGETS = [texts(1), near(texts(1), 2, 0.9)]
REFERENCES = References(TARGETS, TARGETS, language="de")
PEERS = {"chrf": CHRF(word_order=2), "ter": TER()}


@pytest.mark.parametrize("name", PEERS)
def test_equals_sacrebleu(name: str) -> None:
    metric, peer = metric_named(name), PEERS[name]
    system = near(TARGETS[0], 3, 0.7)
    outputs = Outputs([], system)
    scores = metric.scores(outputs, REFERENCES)
    assert scores[name] == round(peer.corpus_score(system, TARGETS).score, 2)
    low, high = metric.interval(scores, metric.main) or (0, 0)
    assert low < scores[name] < high
    signature = str(peer.get_signature())
    assert scores[f"{name}_signature"] == signature.replace("nrefs:2|", "nrefs:2|bs:1000|seed:12345|")
    singles = [peer.sentence_score(line, list(targets)).score for line, *targets in zip(system, *TARGETS, strict=True)]
    assert metric.sentence_scores(outputs, REFERENCES) == pytest.approx(singles)


@pytest.mark.parametrize("name", PEERS)
def test_the_paired_test_is_that_of_sacrebleu(name: str) -> None:
    systems = {"first": near(TARGETS[0], 4, 0.7), "second": near(TARGETS[0], 5, 0.8)}
    first, second = (Outputs([], lines) for lines in systems.values())
    compared = metric_named(name).compare(first, second, REFERENCES, samples=200)[name]
    test = PairedTest(list(systems.items()), {name: PEERS[name]}, references=TARGETS, test_type="bs", n_samples=200)
    [(baseline, system)] = [results for title, results in test()[1].items() if title != "System"]
    assert (compared.baseline.score, compared.system.score) == pytest.approx((baseline.score, system.score))
    assert compared.p_value == pytest.approx(system.p_value)
    assert (compared.difference > 0) == (name == "chrf"), "fewer edits are better"
    assert not metric_named("ter").main.higher_is_better


def test_case_is_that_of_the_preparation() -> None:
    lower = References([["ja gut"]], [["ja gut"]], lowercase=True)
    scores = metric_named("chrf").scores(Outputs([], ["JA GUT"]), lower)
    assert scores["chrf"] == 100 and "case:lc" in scores["chrf_signature"]


def test_ter_of_text_without_spaces_is_warned_of() -> None:
    chinese = ["今天天气很好我们去公园", "他没有来上课因为生病了"]
    [warning] = metric_named("ter").remarks(References([chinese], [chinese], language="zh"))
    assert "hardly a space" in warning
    assert metric_named("ter").remarks(REFERENCES) == []
