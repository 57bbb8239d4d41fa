"""The paired bootstrap against sacrebleu, against a slow computation from its definition, and in known cases."""

from __future__ import annotations

import random
from argparse import Namespace
from collections.abc import Sequence

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest, _compute_p_value
from scipy.stats import t

from fairseq_plugins.scoring.bleu import Bleu, bleu
from fairseq_plugins.scoring.metrics import Outputs, References
from fairseq_plugins.scoring.significance import (
    Comparison,
    paired_bootstrap,
    paired_bootstrap_of_means,
    student,
    welch,
)

WORDS = ["The", "the", "a", "man", "."]


def compare_bleu(
    baseline: list[str],
    system: list[str],
    references: list[list[str]],
    tokenize: str = "none",
    lowercase: bool = False,
    **options: int,
) -> Comparison:
    """Of lines, by one of the two figures."""
    metric = Bleu().configured(Namespace(tokenize=tokenize))
    sides = (Outputs(lines, lines) for lines in (baseline, system))
    [comparison] = metric.compare(*sides, References(references, references, lowercase), **options).values()
    return comparison


def compare_means(baseline: Sequence[float], system: Sequence[float], **options: int) -> Comparison:
    """Of one score for each sentence."""
    rows = (np.array([scores], dtype=np.float64).T for scores in (baseline, system))
    [comparison] = paired_bootstrap(*rows, lambda summed: summed / len(baseline), **options)
    return comparison


def corpus(count: int, seed: int = 1) -> tuple[list[str], list[str], list[list[str]]]:
    """Two systems, the second the better, and two references."""
    generator = random.Random(seed)
    references = [
        [" ".join(generator.choices(WORDS, k=generator.randint(4, 12))) for _ in range(count)] for _ in range(2)
    ]

    def corrupted(rate: float) -> list[str]:
        return [
            " ".join(word if generator.random() > rate else generator.choice(WORDS) for word in line.split())
            for line in references[0]
        ]

    return corrupted(0.4), corrupted(0.3), references


@pytest.mark.parametrize(("tokenize", "lowercase"), [("none", False), ("13a", True)])
def test_bleu_by_its_definition(tokenize: str, lowercase: bool) -> None:
    baseline, system, references = corpus(30)
    found = compare_bleu(baseline, system, references, tokenize=tokenize, lowercase=lowercase, samples=60, seed=7)
    smoothing = "none" if tokenize == "none" else "exp"
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, smooth_method=smoothing, force=True)
    drawn = np.random.default_rng(7).choice(30, size=(60, 30))
    sampled = [
        [
            metric.corpus_score([lines[i] for i in row], [[stream[i] for i in row] for stream in references]).score
            for row in drawn
        ]
        for lines in (baseline, system)
    ]
    scores = [metric.corpus_score(lines, references).score for lines in (baseline, system)]
    for estimate, score, samples in zip((found.baseline, found.system), scores, sampled, strict=True):
        assert estimate.score == pytest.approx(score)
        assert estimate.mean == pytest.approx(np.mean(samples))
        # Of 60 samples one is cut off at either end.
        assert estimate.half_width == pytest.approx((sorted(samples)[-2] - sorted(samples)[1]) / 2)
    assert found.difference == pytest.approx(scores[1] - scores[0])
    absolute = [abs(ours - theirs) for theirs, ours in zip(*sampled, strict=True)]
    exceeding = sum(difference - np.mean(absolute) > abs(found.difference) for difference in absolute)
    assert found.p_value == (exceeding + 1) / 61
    assert 1 / 61 < found.p_value < 1, "a case between the extremes"
    case = "lc" if lowercase else "mixed"
    assert found.signature.startswith(f"nrefs:2|bs:60|seed:7|case:{case}|eff:no|tok:{tokenize}|smooth:{smoothing}|")


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0, 2.0])
def test_scores_by_their_definition(shift: float) -> None:
    generator = np.random.default_rng(3)
    baseline = generator.normal(30, 5, size=40)
    system = baseline + shift + generator.normal(0, 4, size=40)
    found = compare_means(baseline.tolist(), system, samples=200, seed=5)
    drawn = np.random.default_rng(5).choice(40, size=(200, 40))
    means = [scores[drawn].mean(axis=1) for scores in (baseline, system)]
    absolute = np.abs(means[1] - means[0])
    assert found.p_value == _compute_p_value(absolute - absolute.mean(), abs(system.mean() - baseline.mean()))
    for estimate, scores, sampled in zip((found.baseline, found.system), (baseline, system), means, strict=True):
        assert estimate.score == pytest.approx(scores.mean())
        assert estimate.mean == pytest.approx(sampled.mean())
        assert estimate.half_width == pytest.approx((sorted(sampled)[-6] - sorted(sampled)[5]) / 2)
    assert found.difference == pytest.approx((system - baseline).mean())
    assert found.signature == "bs:200|seed:5"


def test_ties_do_not_exceed() -> None:
    # Of two sentences with gains of 0 and 2 a sample has 0, 1 or 2: with a mean of 1 that of 2 is ahead by just 1.
    ties = 0
    for seed in range(1, 40):
        sampled = np.array([0.0, 2.0])[np.random.default_rng(seed).choice(2, size=(4, 2))].mean(axis=1)
        found = compare_means([0, 0], [0, 2], samples=4, seed=seed)
        assert found.p_value == _compute_p_value(sampled - sampled.mean(), 1)
        ties += int(np.any(sampled - sampled.mean() == 1))
    assert ties > 3


def test_equal_systems() -> None:
    baseline, _, references = corpus(20)
    assert compare_bleu(baseline, list(baseline), references, samples=50).p_value == 1
    found = compare_means([1, 2, 3], [1, 2, 3], samples=50)
    assert (found.p_value, found.difference) == (1, 0)
    assert compare_means([1, 3], [3, 1], samples=50).p_value == 1


def test_constant_gain_has_the_smallest_p() -> None:
    scores = np.linspace(10, 60, 25)
    found = compare_means(scores, scores + 0.25, samples=99)
    assert found.p_value == 1 / 100
    assert found.difference == pytest.approx(0.25)
    assert compare_means(scores, scores - 0.25, samples=99).p_value == 1 / 100, "either may be the better one"
    _, system, references = corpus(20)
    assert compare_bleu([""] * 20, system, references, samples=99).p_value == 1 / 100


@pytest.mark.parametrize(("tokenize", "lowercase"), [("none", False), ("13a", True)])
def test_bleu_is_compared_as_sacrebleu_does(tokenize: str, lowercase: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline, system, references = corpus(40)
    found = compare_bleu(baseline, system, references, tokenize, lowercase, samples=100, seed=7)
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    systems = [("baseline", baseline), ("system", system)]
    test = PairedTest(systems, {"BLEU": bleu(tokenize, lowercase)}, references, test_type="bs", n_samples=100)
    signatures, scores = test()
    for ours, theirs in zip((found.baseline, found.system), scores["BLEU"], strict=True):
        assert (ours.score, ours.mean, ours.half_width) == pytest.approx((theirs.score, theirs.mean, theirs.ci))
    assert found.p_value == scores["BLEU"][1].p_value
    assert found.signature == str(signatures["BLEU"])


def test_seed() -> None:
    baseline, system, references = corpus(30)
    one = compare_bleu(baseline, system, references, samples=50, seed=1)
    assert one == compare_bleu(baseline, system, references, samples=50, seed=1)
    assert one.system.mean != compare_bleu(baseline, system, references, samples=50, seed=2).system.mean
    with pytest.raises(ValueError, match="100 samples and the seed 0, but both must be at least 1"):
        compare_bleu(baseline, system, references, samples=100, seed=0)
    with pytest.raises(ValueError, match="0 samples"):
        compare_means([1.0], [2.0], samples=0)


def test_a_system_is_sampled_once() -> None:
    first, second, third = np.random.default_rng(1).normal(size=(3, 20, 1))
    asked = []

    def mean(summed: np.ndarray) -> np.ndarray:
        asked.append(summed)
        return summed / 20

    [again] = paired_bootstrap(first, third, lambda summed: summed / 20)
    paired_bootstrap(first, second, mean)
    asked.clear()
    [comparison] = paired_bootstrap(first, third, mean)
    assert len(asked) == 1000 + 2, "the third's samples, and both sets as they are"
    assert comparison == again
    [other_seed] = paired_bootstrap(first, third, mean, seed=2)
    assert other_seed.baseline.mean != comparison.baseline.mean


def test_the_mean_of_several_runs_by_its_definition() -> None:
    generator = np.random.default_rng(1)
    # A quotient, as most scores are: of all runs' rows together it is another than the mean of the quotients.
    rows = generator.integers(1, 20, size=(2, 3, 30, 2)).astype(float)
    rows[1, 0] *= 10

    def quotient(summed: np.ndarray) -> np.ndarray:
        return summed[:1] / summed[1]

    def mean(runs: np.ndarray, chosen: np.ndarray) -> float:
        return float(np.mean([each[chosen, 0].sum() / each[chosen, 1].sum() for each in runs]))

    [found] = paired_bootstrap_of_means(*map(list, rows), quotient, samples=200, seed=4)
    draws = np.random.default_rng(4)
    differences = [
        mean(rows[1], chosen) - mean(rows[0], chosen) for chosen in (draws.choice(30, 30) for _ in range(200))
    ]
    observed = mean(rows[1], np.arange(30)) - mean(rows[0], np.arange(30))
    assert found.difference == pytest.approx(observed)
    exceeding = np.sum(np.abs(differences) - np.abs(differences).mean() > abs(observed))
    assert found.p_value == pytest.approx((exceeding + 1) / 201)
    [summed] = paired_bootstrap(*rows.sum(axis=1), quotient, samples=200, seed=4)
    assert abs(summed.difference - observed) > 0.01


def test_sums_are_larger_than_what_rows_are_made_of() -> None:
    rows = np.random.default_rng(1).integers(100, 200, size=(2, 300, 1))
    whole, small = (
        paired_bootstrap(*rows.astype(dtype), lambda summed: summed / 300, samples=50) for dtype in (np.int64, np.uint8)
    )
    assert whole == small


def test_sentences_must_match() -> None:
    with pytest.raises(ValueError, match="one row for each sentence, but have 1 and 2"):
        compare_means([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="but have 0 and 0"):
        compare_means([], [])


@pytest.mark.parametrize(("standard_errors", "p_value"), [(1.0, 0.16), (1.645, 0.05), (1.96, 0.025), (2.576, 0.005)])
def test_it_is_as_strict_as_a_one_sided_test(standard_errors: float, p_value: float) -> None:
    noise = np.random.default_rng(0).normal(size=1000)
    noise = (noise - noise.mean()) / noise.std()
    found = compare_means([0.0] * 1000, noise + standard_errors / np.sqrt(1000), samples=2000)
    assert found.p_value == pytest.approx(p_value, rel=0.35)


def test_over_seeds() -> None:
    """By the formulas: means 2 and 5, variances 1 and 4, of three seeds each."""
    half = t.ppf(0.975, 50 / 17) * np.sqrt(5 / 3)
    interval, p_value = welch([1, 2, 3], [3, 5, 7])
    assert interval == pytest.approx((3 - half, 3 + half))
    assert p_value == pytest.approx(2 * t.sf(3 / np.sqrt(5 / 3), 50 / 17))
    half = t.ppf(0.975, 2) * np.sqrt(4 / 3)
    interval, p_value = student([-1, 1, 3])
    assert interval == pytest.approx((1 - half, 1 + half))
    assert p_value == pytest.approx(2 * t.sf(1 / np.sqrt(4 / 3), 2))


def test_seeds_that_are_all_alike() -> None:
    assert welch([1, 1], [3, 3]) == student([2, 2]) == ((2, 2), 0)
    assert welch([1, 1], [1, 1]) == student([0, 0]) == ((0, 0), 1)
