"""Two systems, of which one or both were trained with several seeds: how far they differ, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ..scoring.metrics import Column, Metric, metrics_of
from ..scoring.significance import paired_bootstrap_of_means, student, welch
from .groups_of_runs import Figure, Group
from .recorded_runs import Record


@dataclass(frozen=True)
class SeedComparison:
    """One seed of both systems.

    Attributes:
        seed: of both trainings
        baseline, system: their scores; where a seed has several runs (on several machines), their means
        p_value: of the metric's test over the sentences; None where statistics were not kept or there are several runs
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
        baseline, system: a value for each seed; runs of one seed are alike, and count as one. What is not trained has
            one value
        seeds: those that both have; all of one system where the other is not trained
        interval: the 95 % interval of the difference of the means over the seeds (Welch, 1947; Student's where one
            system is not trained); None where a trained system has a single seed
        p_value: of the same test that both means are the same; None likewise
        together: p of a paired bootstrap over the sentences, of the mean score of all seeds; None where one system has
            a seed that the other has not, since it would be of other trainings than the difference of the means is, or
            where the statistics of one were not kept
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
        """The mean of the system less that of the baseline, of all seeds of both: a shared seed pairs nothing."""
        return self.system.mean - self.baseline.mean


def compare_seeds(baseline: Group, system: Group, subset: str = "test") -> list[SeedsComparison]:
    """Compares two systems by every number that both have of a set.

    A difference over seeds has two sources of chance. The interval is over trainings and takes the test set as it is,
    ``together`` is over sentences and takes the trainings as they are. A system that is not trained is compared with
    each seed of the other; two of them have no seeds to compare.
    """
    groups = (baseline, system)
    keys = [{key for record in group.records for key in record.scores.get(subset, {})} for group in groups]
    both = keys[0] & keys[1]
    comparisons = []
    for metric in metrics_of(both):
        columns = [column for column in metric.columns if column.key in both]
        trained = [_by_seed(group, subset, [column.key for column in columns]) for group in groups]
        # What is not trained gives the same whatever the other's seed.
        runs = [
            runs_of_seed if group.is_trained else dict.fromkeys(other, group.records)
            for group, runs_of_seed, other in zip(groups, trained, reversed(trained), strict=True)
        ]
        if not all(runs):
            continue
        shared = sorted(runs[0].keys() & runs[1].keys())
        rows = {seed: [_statistics(of_seed[seed], subset) for of_seed in runs] for seed in shared}
        tests = {seed: _tested(metric, ours, theirs) for seed, (ours, theirs) in rows.items()}
        is_whole = runs[0].keys() == runs[1].keys() and all(tests.values())
        pairs = [(ours, theirs) for ours, theirs in rows.values() if ours is not None and theirs is not None]
        together = _together(metric, pairs) if is_whole else {}
        for column in columns:
            values = [
                {seed: _mean(runs_of_seed, subset, column) for seed, runs_of_seed in of_seed.items()}
                for of_seed in runs
            ]
            seeds = tuple(
                SeedComparison(seed, values[0][seed], values[1][seed], tests[seed].get(column.key)) for seed in shared
            )
            first, second = (
                Figure(tuple(of_seed.values())[: None if group.is_trained else 1])
                for group, of_seed in zip(groups, values, strict=True)
            )
            interval = p_value = None
            if min(map(len, values)) > 1:
                if baseline.is_trained and system.is_trained:
                    interval, p_value = welch(first.values, second.values)
                else:
                    interval, p_value = student([seed.difference for seed in seeds])
            comparisons.append(
                SeedsComparison(column, first, second, seeds, interval, p_value, together.get(column.key))
            )
    return comparisons


def _by_seed(group: Group, subset: str, keys: Sequence[str]) -> dict[int, list[Record]]:
    """Seed → the runs that have all numbers of a set."""
    runs: dict[int, list[Record]] = {}
    for record in group.records:
        if record.seed is not None and all(key in record.scores.get(subset, {}) for key in keys):
            runs.setdefault(record.seed, []).append(record)
    return runs


def _mean(runs: Sequence[Record], subset: str, column: Column) -> float:
    """A number over the runs of one seed."""
    return fmean(record.scores[subset][column.key] for record in runs)


def _statistics(runs: Sequence[Record], subset: str) -> np.ndarray | None:
    """The statistics of a seed's run; None where there are several, or none were kept."""
    return runs[0].statistics(subset) if len(runs) == 1 else None


def _tested(metric: Metric, baseline: np.ndarray | None, system: np.ndarray | None) -> dict[str, float]:
    """Column's key → p of one seed; empty where statistics are missing or not of the same sentences."""
    if baseline is None or system is None or baseline.shape != system.shape:
        return {}
    return {key: comparison.p_value for key, comparison in metric.compare_statistics(baseline, system).items()}


def _together(metric: Metric, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Column's key → p over all seeds, whose statistics are all there."""
    baseline, system = zip(*pairs, strict=True)
    compared = paired_bootstrap_of_means(baseline, system, metric.scores_of)
    return {column.key: comparison.p_value for column, comparison in zip(metric.columns, compared, strict=True)}
