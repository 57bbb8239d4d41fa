"""Whether one system is better than another by more than chance: paired bootstrap resampling (Koehn, 2004).

The p-value is sacrebleu's (``sacrebleu/significance.py``, after Riezler and Maxwell, 2005): of the samples of the test
set, the share whose absolute difference exceeds the mean absolute difference by more than the observed one, one sample
added to both counts. There is one exception. Where the observed difference is zero p is 1; sacrebleu gives two equal
systems the smallest p that there is. A difference of 1.96 standard errors has p = 0.025: the test is as strict as a
one-sided one. sacrebleu's own test knows sacrebleu's metrics alone; for BLEU this one draws the same samples and finds
the same.

Over seeds it is Welch's t-test (Welch, 1947), or Student's where one of the two systems has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy takes a fifth of a second, for which the help of a command does not wait
    import numpy as np

SAMPLES = 1000
SEED = 12345


@dataclass(frozen=True)
class Interval:
    """A score, or a difference of two, with its 95 % confidence interval.

    Of a single sentence there is no interval: ``low`` and ``high`` are None.
    """

    score: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Estimate:
    """A system's score, the mean over the bootstrap samples, and half the width of their 95 % interval."""

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

    def signed(self, signature: str) -> Comparison:
        """The same with another signature."""
        return replace(self, signature=signature)


def paired_bootstrap(
    baseline: np.ndarray,
    system: np.ndarray,
    scores_of: Callable[[np.ndarray], np.ndarray],
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> list[Comparison]:
    """Compares two systems by scores that are made of sums over the rows.

    Args:
        baseline, system: (N, K), rows of the same sentences in the same order.
        scores_of: summed rows (K,) -> scores (M,).
        samples: of the test set, each of N rows.
        seed: of the sampling, at least 1: sacrebleu takes 0 for no seed.

    Returns:
        a comparison for each of the M scores; its signature has samples and seed alone.

    Raises:
        ValueError: no rows, different numbers of them, no sample, or a seed below 1.
    """
    return paired_bootstrap_of_means([baseline], [system], scores_of, samples=samples, seed=seed)


def paired_bootstrap_of_means(
    baseline: Sequence[np.ndarray],
    system: Sequence[np.ndarray],
    scores_of: Callable[[np.ndarray], np.ndarray],
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> list[Comparison]:
    """:func:`paired_bootstrap` of two systems that have several runs each: of the mean of their runs' scores.

    Args:
        baseline, system: (N, K) for each run, rows of the same sentences in the same order.
    """
    # Not at the head of the file: what asks for scores alone does not wait for it.
    import numpy as np
    from sacrebleu.significance import estimate_ci

    if samples < 1 or seed < 1:
        raise ValueError(f"{samples} samples and the seed {seed}, but both must be at least 1")
    numbers = [len(rows) for rows in (*baseline, *system)]
    if len({*numbers}) > 1 or not all(numbers):
        raise ValueError(f"both systems need one row for each sentence, but have {' and '.join(map(str, numbers))}")
    observed = [np.mean([scores_of(rows.sum(axis=0)) for rows in runs], axis=0) for runs in (baseline, system)]
    sampled = [
        np.mean(
            [_sampled_scores(rows.tobytes(), rows.dtype.str, rows.shape[1], scores_of, samples, seed) for rows in runs],
            axis=0,
        )
        for runs in (baseline, system)
    ]
    comparisons = []
    for place in range(len(observed[0])):
        first, second = (
            Estimate(float(scores[place]), *map(float, estimate_ci(of_samples[:, place])))
            for scores, of_samples in zip(observed, sampled, strict=True)
        )
        difference = second.score - first.score
        differences = np.abs(sampled[1][:, place] - sampled[0][:, place])
        exceeding = int(np.count_nonzero(differences - differences.mean() > abs(difference)))
        p_value = (exceeding + 1) / (samples + 1) if difference else 1.0
        comparisons.append(Comparison(first, second, difference, p_value, samples, seed, f"bs:{samples}|seed:{seed}"))
    return comparisons


def bootstrap_intervals(
    rows: np.ndarray, scores_of: Callable[[np.ndarray], np.ndarray], *, samples: int = SAMPLES, seed: int = SEED
) -> list[tuple[float, float]]:
    """The 95 % interval of each of M scores, between the percentiles of the samples' scores.

    Args:
        rows: (N, K), one for each sentence.
        scores_of: summed rows (K,) -> scores (M,).
        samples: of the test set, each of N rows.
        seed: of the sampling.
    """
    import numpy as np

    sampled = _sampled_scores(rows.tobytes(), rows.dtype.str, rows.shape[1], scores_of, samples, seed)
    low, high = np.percentile(sampled, [2.5, 97.5], axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


# Kept, since pages of documentation compare a system with several others.
@lru_cache(maxsize=512)
def _sampled_scores(
    content: bytes,
    dtype: str,
    width: int,
    scores_of: Callable[[np.ndarray], np.ndarray],
    samples: int,
    seed: int,
) -> np.ndarray:
    """A system's scores (samples, M), of the same samples as every other system's of so many rows.

    Args:
        content, dtype, width: of the rows (N, width); as bytes they can be looked up
    """
    import numpy as np

    rows = np.frombuffer(content, dtype).reshape(-1, width)
    # A product is faster than adding up the rows that were drawn; float64 holds sums of whole numbers exactly.
    exact = rows.astype(np.float64)
    summed = (times.astype(np.float64) @ exact for times in _times_drawn(len(rows), samples, seed))
    of_sums = rows.sum(axis=0).dtype
    return np.array([scores_of(sample.astype(of_sums)) for sample in summed])


@lru_cache(maxsize=4)
def _times_drawn(rows: int, samples: int, seed: int) -> np.ndarray:
    """How often each of N rows is in each sample of N: (samples, N)."""
    import numpy as np

    generator = np.random.default_rng(seed)
    drawn = (generator.choice(rows, size=rows) for _ in range(samples))
    return np.array([np.bincount(chosen, minlength=rows).astype(np.min_scalar_type(rows)) for chosen in drawn])


def welch(baseline: Sequence[float], system: Sequence[float]) -> tuple[tuple[float, float], float]:
    """The 95 % interval of the difference of two means, and the two-sided p-value that there is none.

    Args:
        baseline, system: a score for each seed, at least two of each
    """
    if len({*baseline}) == len({*system}) == 1:  # no variance to divide by
        difference = system[0] - baseline[0]
        return (difference, difference), float(difference == 0)
    # Not at the head of the file: what asks for scores alone does not wait for it.
    from scipy.stats import ttest_ind

    tested = ttest_ind(system, baseline, equal_var=False)
    low, high = tested.confidence_interval(0.95)
    return (float(low), float(high)), float(tested.pvalue)


def student(differences: Sequence[float]) -> tuple[tuple[float, float], float]:
    """The 95 % interval of a mean, and the two-sided p-value that it is zero (Student's t-test of one sample).

    Args:
        differences: to a system that is always the same, one for each seed of the other, at least two
    """
    if len({*differences}) == 1:  # no variance to divide by
        return (differences[0], differences[0]), float(differences[0] == 0)
    # Not at the head of the file: what asks for scores alone does not wait for it.
    from scipy.stats import ttest_1samp

    tested = ttest_1samp(differences, 0)
    low, high = tested.confidence_interval(0.95)
    return (float(low), float(high)), float(tested.pvalue)
