"""Parts of pages in ``docs/notes/`` that compare recorded systems over their seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ..experiments import configuration as configurations
from ..experiments.record_groups import Group, baselines, group_of, longest_with_own_budget
from ..experiments.records import VALIDATION_SET, Record, checkpoint_name
from ..experiments.seeds import SeedsComparison, compare_seeds
from ..package_files import CONFIGURATIONS
from ..tables.writing import markdown

NOT_RECORDED = "No two of these systems are recorded with the options of today yet."
UNKNOWN = "–"
BY_SEED = "difference by seed"
Pair = tuple[str, str]
"""The names of two systems, the baseline first: configurations, or what is not trained."""


def comparisons(
    records: Sequence[Record],
    dataset: str,
    pairs: Iterable[Pair],
    averages: Sequence[int] = (0,),
    brief: bool = False,
    differences: Mapping[str, str | None] = MappingProxyType({}),
) -> str:
    """A table with a row for each pair of systems, checkpoint and set that both are recorded for.

    Args:
        records: of all runs
        dataset: the folder below ``configs/``
        pairs: systems to compare, by the main number of their metric
        averages: of how many epochs' checkpoints; 0 for the best one
        brief: the differences alone, without the systems' own scores and without p
        differences: option → value, in which the runs differ from their configurations
    """
    rows: list[dict[str, str]] = []
    for average in averages:
        for pair in pairs:
            baseline, system = (_group(records, dataset, name, average, differences) for name in pair)
            # A difference of systems that trained for unlike times would say nothing of them.
            if baseline is None or system is None or baseline.differences != system.differences:
                continue
            for subset in _sets((baseline, system)):
                main_number = compare_seeds(baseline, system, subset)[:1]
                rows += [_row(pair, average, subset, comparison, brief) for comparison in main_number]
    table = {heading: [row[heading] for row in rows] for heading in (rows[0] if rows else ())}
    if any("(" in cell for cell in table.get(BY_SEED, ())):
        table = {f"{BY_SEED} (p)" if heading == BY_SEED else heading: cells for heading, cells in table.items()}
    shown = {
        heading: cells
        for heading, cells in table.items()
        # Of one checkpoint or one set there is nothing to tell apart.
        if set(cells) != {UNKNOWN} and (heading not in ("checkpoint", "set") or len({*cells}) > 1)
    }
    return "\n".join(markdown(shown)) if shown else NOT_RECORDED


def _group(
    records: Sequence[Record], dataset: str, name: str, average: int, differences: Mapping[str, str | None]
) -> Group | None:
    """The recorded runs of a system with these differences from its options of today, or with a budget of their own;
    what was carried over has no seeds to compare."""
    path = CONFIGURATIONS / dataset / f"{name}.yaml"
    if not path.exists():
        return baselines(records, dataset).get(name)
    configuration, checkpoint = configurations.load(path), checkpoint_name(average)
    group = group_of(configuration, records, checkpoint, differences)
    if group is None and not differences:
        group = longest_with_own_budget(configuration, records, checkpoint)
    return None if group is None or group.records[0].carried_over else group


def _sets(groups: Sequence[Group]) -> list[str]:
    """The sets for testing that all groups are recorded for, in the order of the first run."""
    others = [{name for record in group.records for name in record.scores} for group in groups]
    names = [name for name in groups[0].records[0].scores if name != VALIDATION_SET]
    return [name for name in names if all(name in each for each in others)]


def _row(pair: Pair, average: int, subset: str, comparison: SeedsComparison, brief: bool) -> dict[str, str]:
    form = comparison.column.form
    interval = UNKNOWN
    if comparison.interval is not None:
        low, high = comparison.interval
        interval = f"{low:+{form}} to {high:+{form}}"
    by_seed = [f"{each.difference:+{form}}" for each in comparison.seeds]
    own, together = {}, {}
    if not brief:
        own = {
            f"{comparison.column.label}, baseline": comparison.baseline.text(form),
            "system's": comparison.system.text(form),
        }
        values = [each.p_value for each in comparison.seeds]
        by_seed = [
            shown if value is None else f"{shown} ({_p(value)})" for shown, value in zip(by_seed, values, strict=True)
        ]
        together = {"p, all seeds together": _p(comparison.together)}
    return {
        "baseline": f"`{pair[0]}`",
        "system": f"`{pair[1]}`",
        "checkpoint": checkpoint_name(average),
        "set": subset,
        **own,
        BY_SEED: ", ".join(by_seed),
        "mean difference": f"{comparison.difference:+{form}}",
        "95 % interval over seeds": interval,
        **together,
    }


def _p(value: float | None) -> str:
    return UNKNOWN if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"
