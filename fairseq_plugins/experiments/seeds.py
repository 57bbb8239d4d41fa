"""Two systems that were trained with several seeds: how far they differ, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..scoring.metrics import Column, Metric, metrics_of
from ..scoring.significance import paired_bootstrap
from .records import Figure, Group, Record


@dataclass(frozen=True)
class SeedComparison:
    """One seed of both systems.

    Attributes:
        seed: of both trainings
        baseline, system: their scores
        p_value: of the metric's test over the sentences; None where a run's statistics were not kept
    """

    seed: int
    baseline: float
    system: float
    p_value: float | None

    @property
    def difference(self) -> float:
        """The system's score less the baseline's."""
        return self.system - self.baseline


@dataclass(frozen=True)
class SeedsComparison:
    """A number of two systems.

    Attributes:
        column: which number
        baseline, system: over all runs of each
        seeds: those that both have
        interval: the 95 % interval of the difference of the means over the seeds (Welch, 1947); None where a system has
            a single run
        p_value: of Welch's t-test that both means are the same; None likewise
        together: p of a paired bootstrap over the sentences, in which a sentence brings the outputs of all seeds that
            both have; None where the statistics of one were not kept
    """

    column: Column
    baseline: Figure
    system: Figure
    seeds: tuple[SeedComparison, ...]
    interval: tuple[float, float] | None
    p_value: float | None
    together: float | None

    @property
    def difference(self) -> float:
        """The mean of the system less that of the baseline."""
        return self.system.mean - self.baseline.mean


def compare_seeds(baseline: Group, system: Group, subset: str = "test") -> list[SeedsComparison]:
    """Compares two systems by every number that both have of a set.

    A difference over seeds has two sources of chance. The interval is over trainings and takes the test set as it is,
    ``together`` is over sentences and takes the trainings as they are.
    """
    keys = [{key for record in group.records for key in record.scores.get(subset, {})} for group in (baseline, system)]
    both = keys[0] & keys[1]
    found = []
    for metric in metrics_of(both):
        columns = [column.key for column in metric.columns if column.key in both]
        pairs = _pairs(baseline, system, subset, columns)
        tests = [_tested(metric, first, second, subset) for first, second in pairs]
        together = _together(metric, pairs, subset) if pairs and all(tests) else {}
        for column in metric.columns:
            if column.key not in both:
                continue
            figures = [group.figure(column.key, subset) for group in (baseline, system)]
            interval, p_value = _welch(*(figure.values for figure in figures))
            seeds = tuple(
                SeedComparison(
                    first.seed,
                    *(record.scores[subset][column.key] for record in (first, second)),
                    test.get(column.key),
                )
                for (first, second), test in zip(pairs, tests, strict=True)
            )
            found.append(SeedsComparison(column, *figures, seeds, interval, p_value, together.get(column.key)))
    return found


def _pairs(baseline: Group, system: Group, subset: str, columns: Sequence[str]) -> list[tuple[Record, Record]]:
    """The runs of each seed that both systems have, the first run of a seed where there are several."""
    runs: list[dict[int, Record]] = []
    for group in (baseline, system):
        of_seed: dict[int, Record] = {}
        for record in group.records:
            if record.seed is not None and all(key in record.scores.get(subset, {}) for key in columns):
                of_seed.setdefault(record.seed, record)
        runs.append(of_seed)
    return [(runs[0][seed], runs[1][seed]) for seed in sorted(runs[0].keys() & runs[1].keys())]


def _tested(metric: Metric, baseline: Record, system: Record, subset: str) -> dict[str, float]:
    """Column's key → p of one seed; empty where statistics are missing or not of the same sentences."""
    rows = [record.statistics(subset) for record in (baseline, system)]
    if any(each is None for each in rows) or rows[0].shape != rows[1].shape:
        return {}
    return {key: comparison.p_value for key, comparison in metric.compare_statistics(*rows).items()}


def _together(metric: Metric, pairs: Sequence[tuple[Record, Record]], subset: str) -> dict[str, float]:
    """Column's key → p over all seeds, whose statistics are all there."""
    summed = [np.sum([pair[side].statistics(subset) for pair in pairs], axis=0) for side in (0, 1)]
    found = paired_bootstrap(*summed, metric.scores_of)
    return {column.key: comparison.p_value for column, comparison in zip(metric.columns, found, strict=True)}


def _welch(baseline: Sequence[float], system: Sequence[float]) -> tuple[tuple[float, float] | None, float | None]:
    """The 95 % interval of the difference of two means, and the p-value of none."""
    if min(len(baseline), len(system)) < 2:
        return None, None
    if len({*baseline}) == len({*system}) == 1:  # every run of a system has the same score: no variance to divide by
        difference = system[0] - baseline[0]
        return (difference, difference), float(difference == 0)
    # Not at the head of the file: it takes half a second to import.
    from scipy.stats import ttest_ind

    tested = ttest_ind(system, baseline, equal_var=False)
    low, high = tested.confidence_interval(0.95)
    return (float(low), float(high)), float(tested.pvalue)
