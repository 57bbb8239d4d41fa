"""Two systems whose runs are recorded, over their seeds (``fairseq_plugins.experiments.comparison_over_seeds``)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, nearest
from ..experiments import configuration as configurations
from ..experiments import groups_of_runs, recorded_runs
from ..experiments.comparison_over_seeds import SeedsComparison, compare_seeds
from ..experiments.groups_of_runs import Group
from ..package_files import CONFIGURATIONS, ROOT
from ..terminal import table
from .result import Analysis, Panel

UNKNOWN = "–"


@dataclass(frozen=True)
class SeedsReport:
    """Two systems of a data set.

    Attributes:
        systems: the names of the first, the baseline, and of the second.
        are_trained: whether both are, so that the interval is Welch's.
        comparisons: a number each.
    """

    systems: tuple[str, str]
    are_trained: bool
    comparisons: list[SeedsComparison]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command ``seeds``."""
    parser.add_argument("dataset", metavar="DATASET", help="a folder below configs/ and results/: multi30k_de_en")
    parser.add_argument("baseline", metavar="BASELINE", help="a configuration of it, or a rule: rnnsearch")
    parser.add_argument("system", metavar="SYSTEM", help="another one: mc_rnn_3")
    parser.add_argument("--subset", default="test", metavar="NAME", help="the set's own name (default: test)")
    parser.add_argument(
        "--average", type=int, default=0, metavar="N", help="the mean of the last N epochs' checkpoints, not the best"
    )


def run(arguments: argparse.Namespace) -> Analysis:
    """The command ``seeds``.

    Raises:
        InputError: nothing is recorded of a system, or not of this set, or neither system is trained.
    """
    recorded = recorded_runs.load_all()
    baseline, system = (group_named(arguments, name, recorded) for name in (arguments.baseline, arguments.system))
    groups = (baseline, system)
    if not any(group.is_trained for group in groups):
        raise InputError(
            f"neither '{arguments.baseline}' nor '{arguments.system}' is trained; name a system that has seeds"
        )
    systems, are_trained = (arguments.baseline, arguments.system), all(group.is_trained for group in groups)
    report = SeedsReport(systems, are_trained, compare_seeds(baseline, system, arguments.subset))
    if not report.comparisons:
        sets = sorted({name for group in groups for record in group.records for name in record.scores})
        raise InputError(f"--subset {arguments.subset}: not recorded of both systems; there are {', '.join(sets)}")
    return Analysis(_numbers(report), [Panel(report)], _text(report))


def group_named(arguments: argparse.Namespace, name: str, recorded: Sequence[recorded_runs.Record]) -> Group:
    """The recorded runs of a configuration as it is today, or the record of what is not trained.

    Raises:
        InputError: there is no such configuration or data set, or nothing is recorded of it.
    """
    baselines = groups_of_runs.baselines(recorded, arguments.dataset)
    if name in baselines:
        return baselines[name]
    folder = CONFIGURATIONS / arguments.dataset
    path = folder / f"{name}.yaml"
    # A recipe, or one of several data sets, is in the name of what is recorded.
    of_data_set = {record.system: record for record in recorded if record.dataset == arguments.dataset}
    if name in of_data_set and (configuration_name := of_data_set[name].configuration) is not None:
        path = ROOT / configuration_name
    elif not path.is_file():
        asked = name if folder.is_dir() else arguments.dataset
        datasets = {record.dataset for record in recorded}
        systems = {file.stem for file in folder.glob("[!_]*.yaml")} | of_data_set.keys()
        there = sorted(systems if folder.is_dir() else datasets)
        raise InputError(f"{path}: there is no '{asked}'{nearest(asked, there)}; there are {', '.join(there)}")
    checkpoint = recorded_runs.checkpoint_name(arguments.average)
    configurations.load(path).load_extensions()  # the metric may be one of theirs
    group = groups_of_runs.group_of_system(arguments.dataset, name, recorded, checkpoint)
    if group is None:
        place = recorded_runs.folder() / arguments.dataset / name
        raise InputError(
            f"{place}: no run of {path} is recorded with its options of today and the checkpoint '{checkpoint}'; "
            f"'fairseq-plugins evaluate --record' records one"
        )
    return group


def _numbers(report: SeedsReport) -> dict[str, Any]:
    return {
        "systems": report.systems,
        "comparisons": {
            comparison.column.key: {
                "baseline": comparison.baseline.values,
                "system": comparison.system.values,
                "difference": comparison.difference,
                "interval": comparison.interval,
                "p_value": comparison.p_value,
                "together": comparison.together,
                "seeds": {
                    of_seed.seed: {"difference": of_seed.difference, "p_value": of_seed.p_value}
                    for of_seed in comparison.seeds
                },
            }
            for comparison in report.comparisons
        },
    }


def _text(report: SeedsReport) -> str:
    first, second = report.systems
    blocks = []
    for comparison in report.comparisons:
        form = comparison.column.form
        rows = [
            {
                "seed": of_seed.seed,
                first: f"{of_seed.baseline:{form}}",
                second: f"{of_seed.system:{form}}",
                "difference": f"{of_seed.difference:+{form}}",
                "p": _p(of_seed.p_value),
            }
            for of_seed in comparison.seeds
        ]
        mean = {
            "seed": "mean",
            first: comparison.baseline.text(form),
            second: comparison.system.text(form),
            "difference": f"{comparison.difference:+{form}}",
            "p": _p(comparison.together),
        }
        interval = "needs two runs of each system that is trained"
        if comparison.interval is not None:
            low, high = comparison.interval
            test = "Welch's t-test" if report.are_trained else "t-test"
            p_value = f"p = {_p(comparison.p_value)}".replace("= <", "<")
            interval = f"{low:+{form}} to {high:+{form}} ({test} over the seeds, {p_value})"
        blocks += [
            f"== {comparison.column.label} ==\n{table([*rows, mean])}",
            f"95 % interval of the difference: {interval}",
        ]
    explained = "p in the table is over sentences; that of the mean is over all seeds, if both systems have the same."
    return "\n\n".join([*blocks, explained])


def _p(value: float | None) -> str:
    return UNKNOWN if value is None else "< 0.0001" if value < 0.0001 else f"{value:.4f}"
