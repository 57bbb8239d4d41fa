"""Recorded runs that belong together, and the figure that they make."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .configuration import Configuration
from .recorded_runs import BEST, Record, checkpoint_name

BUDGET = frozenset({"max-epoch", "max-update", "stop-time-hours"})
"""The options that say for how long a training goes."""


@dataclass(frozen=True)
class Group:
    """Runs of one configuration with the same options, which differ in seed or machine.

    Attributes:
        records: one or several
        differences: option → value, in which all of them differ from the configuration
    """

    records: tuple[Record, ...]
    differences: Mapping[str, str | None]

    @property
    def dataset(self) -> str:
        return self.records[0].dataset

    @property
    def system(self) -> str:
        return self.records[0].system

    @property
    def configuration(self) -> str | None:
        return self.records[0].configuration

    @property
    def recipe(self) -> str | None:
        return self.records[0].recipe

    @property
    def checkpoint(self) -> str:
        return self.records[0].checkpoint

    @property
    def is_trained(self) -> bool:
        """Whether it has a configuration or seeds; a rule has neither, and one record."""
        return self.configuration is not None or any(record.seed is not None for record in self.records)

    def figure(self, key: str, subset: str = "test") -> Figure | None:
        """A number over the runs that have it; None where none has.

        Args:
            key: of a metric's column
            subset: the set's own name
        """
        values = [record.scores[subset][key] for record in self.records if key in record.scores.get(subset, {})]
        return Figure(tuple(values)) if values else None


@dataclass(frozen=True)
class Figure:
    """A number of one run or of several.

    Attributes:
        values: one for each run
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """The sample's standard deviation; None for one run."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def runs(self) -> str:
        """``one run`` or ``3 runs``."""
        return "one run" if len(self.values) == 1 else f"{len(self.values)} runs"

    def text(self, form: str) -> str:
        """``92.59``, or ``92.41 ± 0.21``."""
        return f"{self.mean:{form}}" + ("" if self.deviation is None else f" ± {self.deviation:{form}}")

    def range(self, form: str) -> str:
        """``92.10 to 92.60``, or the number of one run."""
        ends = dict.fromkeys(f"{end(self.values):{form}}" for end in (min, max))
        return " to ".join(ends)


def groups(records: Iterable[Record]) -> list[Group]:
    """The runs that belong together: systems in the order of the first of each, today's options and best ones first."""
    by_group: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        differences = tuple(sorted(record.differences.items()))
        key = (record.dataset, record.system, differences, record.checkpoint, record.carried_over)
        by_group.setdefault(key, []).append(record)
    made = [Group(tuple(members), dict(key[2])) for key, members in by_group.items()]
    systems = list(dict.fromkeys((group.dataset, group.system) for group in made))
    return sorted(
        made,
        key=lambda group: (
            systems.index((group.dataset, group.system)),
            len(group.differences),
            group.checkpoint != BEST,
        ),
    )


def has_own_budget(record: Record) -> bool:
    """Whether a run differs from its configuration in how long it trained, and in nothing else."""
    return bool(record.differences) and BUDGET.issuperset(record.differences)


def longest_with_own_budget(configuration: Configuration, records: Iterable[Record]) -> Group | None:
    """Of the runs of a configuration with a budget of their own those with most updates; None where there is none.

    Args:
        configuration: the experiment
        records: among which to look
    """
    checkpoint = checkpoint_name(configuration.average)
    runs = _runs_of(configuration.dataset, configuration.model, records, checkpoint)
    budgeted = [record for record in runs if has_own_budget(record)]
    return max(groups(budgeted), key=lambda group: group.records[0].updates or 0, default=None)


def group_of(configuration: Configuration, records: Iterable[Record], checkpoint: str | None = None) -> Group | None:
    """The runs of a configuration as it is, whatever their seeds and machines; None where there is none.

    Args:
        configuration: the experiment
        records: among which to look
        checkpoint: which one was evaluated; what the configuration says unless it is given
    """
    wanted = checkpoint or checkpoint_name(configuration.average)
    return group_of_system(configuration.dataset, configuration.model, records, wanted)


def group_of_system(dataset: str, system: str, records: Iterable[Record], checkpoint: str) -> Group | None:
    """The runs of a system that has a configuration, with the options of that; see :func:`group_of`."""
    unchanged = [record for record in _runs_of(dataset, system, records, checkpoint) if not record.differences]
    recorded = [record for record in unchanged if not record.carried_over]
    return Group(tuple(recorded or unchanged), {}) if unchanged else None


def baselines(records: Iterable[Record], dataset: str) -> dict[str, Group]:
    """What is not trained and recorded of a data set (:func:`.recorded_runs.record_baseline`), by its system's name."""
    baselines_of_set = (Group((record,), {}) for record in records if record.dataset == dataset)
    return {group.system: group for group in baselines_of_set if not group.is_trained}


def _runs_of(dataset: str, system: str, records: Iterable[Record], checkpoint: str) -> list[Record]:
    """The runs of a system that has a configuration, with any options."""
    wanted = (dataset, system, checkpoint)
    return [
        record
        for record in records
        if record.configuration is not None and (record.dataset, record.system, record.checkpoint) == wanted
    ]
