"""Whether one system is better than another by more than chance: paired bootstrap resampling (Koehn, 2004).

The p-value is sacrebleu's (``sacrebleu/significance.py``, after Riezler and Maxwell, 2005): of the samples of the test
set, the share whose absolute difference exceeds the mean absolute difference by more than the observed one, one sample
added to both counts. There is one exception. Where the observed difference is zero p is 1; sacrebleu gives two equal
systems the smallest p that there is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sacrebleu.significance import PairedTest, estimate_ci

from ..scoring.bleu import bleu

SAMPLES = 1000
SEED = 12345


@dataclass(frozen=True)
class Estimate:
    """A system's score in percent, the mean over the bootstrap samples, and half the width of their 95 % interval."""

    score: float
    mean: float
    half_width: float


@dataclass(frozen=True)
class Comparison:
    """Two systems on one test set.

    Attributes:
        baseline, system: their scores.
        difference: the system's score less the baseline's.
        p_value: of the hypothesis that they are equally good.
        samples, seed: of the bootstrap.
        signature: how the scores and the test were computed, in sacreBLEU's manner.
    """

    baseline: Estimate
    system: Estimate
    difference: float
    p_value: float
    samples: int
    seed: int
    signature: str


def paired_bootstrap_bleu(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str = "none",
    lowercase: bool = False,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Comparison:
    """Compares the BLEU of two systems with sacrebleu's own paired bootstrap test.

    Args:
        baseline, system: N sentences each.
        references: one or several for each: lists of N.
        tokenize: ``none`` for tokenised BLEU, ``13a`` for sacreBLEU.
        lowercase: all sides.
        samples: of the test set, each of N sentences.
        seed: of the sampling, at least 1: sacrebleu takes 0 for no seed.

    Raises:
        ValueError: no sentences, lists of different length, no sample, or a seed below 1.
    """
    _check(samples, seed, len(baseline), len(system), *map(len, references))
    metric = bleu(tokenize, lowercase)
    with _sacrebleu_seed(seed):
        test = PairedTest(
            [("baseline", baseline), ("system", system)],
            {"BLEU": metric},
            references,
            test_type="bs",
            n_samples=samples,
        )
        signatures, results = test()
    first, second = (Estimate(float(r.score), float(r.mean), float(r.ci)) for r in results["BLEU"])
    difference = second.score - first.score
    p_value = results["BLEU"][1].p_value if difference else 1.0
    return Comparison(first, second, difference, p_value, samples, seed, str(signatures["BLEU"]))


def paired_bootstrap(
    baseline_scores: Sequence[float] | np.ndarray,
    system_scores: Sequence[float] | np.ndarray,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Comparison:
    """Compares the mean scores of two systems' sentences, such as their ROUGE.

    With the same seed the samples are those of :func:`paired_bootstrap_bleu`.

    Args:
        baseline_scores, system_scores: (N,) each, of the same sentences in the same order.
        samples: of the test set, each of N sentences.
        seed: of the sampling, at least 1, as for BLEU.

    Raises:
        ValueError: no sentences, different numbers of them, no sample, or a seed below 1.
    """
    _check(samples, seed, len(baseline_scores), len(system_scores))
    scores = np.array([baseline_scores, system_scores], dtype=np.float64)
    count = scores.shape[1]
    generator = np.random.default_rng(seed)
    means = np.array([scores[:, generator.choice(count, size=count)].mean(axis=1) for _ in range(samples)])
    baseline, system = (
        Estimate(float(row.mean()), *map(float, estimate_ci(sampled)))
        for row, sampled in zip(scores, means.T, strict=True)
    )
    difference = system.score - baseline.score
    differences = np.abs(means[:, 1] - means[:, 0])
    exceeding = int(np.count_nonzero(differences - differences.mean() > abs(difference)))
    p_value = (exceeding + 1) / (samples + 1) if difference else 1.0
    return Comparison(baseline, system, difference, p_value, samples, seed, f"bs:{samples}|seed:{seed}")


def _check(samples: int, seed: int, *lengths: int) -> None:
    if samples < 1 or seed < 1:
        raise ValueError(f"{samples} samples and the seed {seed}, but both must be at least 1")
    if len(set(lengths)) != 1 or not lengths[0]:
        raise ValueError(
            f"both systems and their references need one sentence each, but have {', '.join(map(str, lengths))}"
        )


@contextmanager
def _sacrebleu_seed(seed: int) -> Iterator[None]:
    """sacrebleu reads its seed from the environment, and nowhere else, when a test is made."""
    name = "SACREBLEU_SEED"
    before = os.environ.get(name)
    os.environ[name] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
