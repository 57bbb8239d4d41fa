"""The rows of a paper's table with what our experiments have come to."""

from __future__ import annotations

import fnmatch
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import InputError
from ..experiments.groups_of_runs import Figure
from ..experiments.run import Run
from ..experiments.training_identity import TrainingIdentity
from ..scoring.significance import Comparison, welch
from .tables import Row, Table


@dataclass(frozen=True)
class SeededRun:
    """One experiment of a row.

    Attributes:
        seed: of its training
        run: what was trained
        figures: ours, by column
    """

    seed: int
    run: Run
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """A row of the table with what came out.

    Attributes:
        system: the row's name
        paper: the paper's figures, by column
        ours: mean over the seeds, by column
        deviation: standard deviation over the seeds, where there are several
        difference: ours less the paper's, by column; nothing at small scale
        paper_parameters: in millions
        parameters: ours
        updates: mean over the seeds
        hours: of training, mean over the seeds
        seeds: ours by seed, then by column
        significance: against each of the row's baselines with the same seed: by baseline, by seed, then by column
        over_seeds: of three seeds or more, the p-value of Welch's t-test against a baseline's: by baseline and column
        note: why there is nothing of ours, or what to know of the paper's figure
    """

    system: str
    paper: Mapping[str, float]
    ours: Mapping[str, float] = field(default_factory=dict)
    deviation: Mapping[str, float] = field(default_factory=dict)
    difference: Mapping[str, float] = field(default_factory=dict)
    paper_parameters: float | None = None
    parameters: int | None = None
    updates: int | None = None
    hours: float | None = None
    seeds: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    significance: Mapping[str, Mapping[int, Mapping[str, Comparison]]] = field(default_factory=dict)
    over_seeds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class GainResult:
    """What a part gains, by column.

    Attributes:
        part: its name
        without, having: the rows
        paper: the difference of the paper's figures
        ours: that of ours, the mean over the seeds
        deviation: of ours, where there are several seeds
        significance: of ours, by seed, then by column
        over_seeds: of three seeds or more, the p-value of Welch's t-test, by column
    """

    part: str
    without: str
    having: str
    paper: Mapping[str, float]
    ours: Mapping[str, float]
    deviation: Mapping[str, float]
    significance: Mapping[int, Mapping[str, Comparison]]
    over_seeds: Mapping[str, float]


def load_runs(table: Table, row: Row, work: Path, seeds: Sequence[int], scale: str) -> list[SeededRun]:
    """What the experiments of a row have left.

    Raises:
        InputError: an experiment was not trained, or not evaluated, or trained with other options than another.
    """
    configuration = row.configuration
    if configuration is None:
        return []
    runs: list[SeededRun] = []
    first: TrainingIdentity | None = None
    for seed in seeds:
        folder = work.joinpath(*table.system_of(configuration), f"seed_{seed}")
        run = Run(folder)
        if not run.is_trained:
            raise InputError(f"{folder}: no experiment there; run {table.command}")
        identity = _identity(folder)
        first = identity if not runs else first
        if first is not None and identity is not None and (differing := first.differences(identity)):
            raise InputError(
                f"{folder}: not trained as seed {seeds[0]} was: {'; '.join(differing)}; delete one of the two folders"
            )
        runs.append(SeededRun(seed, run, figures_of(table, row, run, scale)))
    return runs


def _identity(folder: Path) -> TrainingIdentity | None:
    """What seeds have in common; None where nobody kept it."""
    identity = TrainingIdentity.load(folder)
    if identity is None:
        return None
    own = ("seed", "finetune_from_model")
    return replace(identity, options={name: value for name, value in identity.options.items() if name not in own})


def figures_of(table: Table, row: Row, run: Run, scale: str) -> dict[str, float]:
    """Our figures of one experiment, by column.

    Raises:
        InputError: a set was not evaluated.
    """
    try:
        return table.measure.figures_of(row.flow, row.variant, run, scale == "small")
    except (KeyError, FileNotFoundError) as error:
        raise InputError(f"{run.folder}: {error} is missing there; run {table.command}") from None


def results_of(table: Table, runs: Mapping[str, Sequence[SeededRun]], scale: str) -> list[Result]:
    """The rows of the table with what came out.

    Args:
        table: of the paper
        runs: the experiments of each row that has any
        scale: of :data:`.tables.SCALES`; only the paper's figures have a difference to ours
    """
    results: dict[str, Result] = {}
    for row in table.rows:
        if row.average is None:
            results[row.system] = _result_of(table, row, runs, scale)
        else:
            results[row.system] = _average_of(table, row, row.average, results, scale)
    return list(results.values())


def _average_of(table: Table, row: Row, pattern: str, results: Mapping[str, Result], scale: str) -> Result:
    """The mean of the rows above whose names fit the pattern, seed by seed."""
    names = [one.system for one in table.rows if one.average is None and fnmatch.fnmatchcase(one.system, pattern)]
    members = [results[name] for name in names if name in results and results[name].seeds]
    if not members:
        return Result(row.system, row.figures, note="none of its rows is trained")
    columns = list(members[0].ours)
    seeds = {
        seed: {column: statistics.fmean(member.seeds[seed][column] for member in members) for column in columns}
        for seed in members[0].seeds
    }
    ours, deviation = _over_seeds(list(seeds.values()), columns)
    is_whole = len(members) == len(names)
    over_seeds = {
        baseline: p
        for baseline in row.baselines
        if baseline != row.system and baseline in results
        if (p := p_over_seeds(list(results[baseline].seeds.values()), list(seeds.values()), columns))
    }
    return Result(
        row.system,
        row.figures,
        ours,
        deviation,
        _difference(ours, row) if is_whole and scale == "paper" else {},
        seeds=seeds,
        over_seeds=over_seeds,
        note="" if is_whole else f"the mean of {len(members)} of the {len(names)} sets",
    )


def _result_of(table: Table, row: Row, runs: Mapping[str, Sequence[SeededRun]], scale: str) -> Result:
    note = "the paper's two off-diagonal figures may be the other way round" if row.uncertain else ""
    if row.configuration is None:
        note = row.missing or "quoted by the paper"
        return Result(row.system, row.figures, paper_parameters=row.parameters, note=note)
    seeded = runs[row.system]
    columns = list(seeded[0].figures)
    figures = [one.figures for one in seeded]
    ours, deviation = _over_seeds(figures, columns)
    significance: dict[str, dict[int, dict[str, Comparison]]] = {}
    over_seeds = {}
    for baseline in row.baselines:
        if baseline not in runs or baseline == row.system:
            continue
        # Of a variant there is nothing to compare with.
        if row.variant is None:
            significance[baseline] = {
                one.seed: table.measure.compared(other.run, one.run, columns)
                for one, other in zip(seeded, runs[baseline], strict=True)
            }
        if p_values := p_over_seeds([one.figures for one in runs[baseline]], figures, columns):
            over_seeds[baseline] = p_values
    return Result(
        row.system,
        row.figures,
        ours,
        deviation,
        _difference(ours, row) if scale == "paper" else {},
        row.parameters,
        seeded[0].run.results["parameters"],
        round(statistics.fmean(one.run.results["updates"] for one in seeded)),
        statistics.fmean(one.run.results["train_seconds"] for one in seeded) / 3600,
        {one.seed: one.figures for one in seeded},
        significance,
        over_seeds,
        note,
    )


def gains_of(table: Table, runs: Mapping[str, Sequence[SeededRun]]) -> list[GainResult]:
    """What the parts that the table names gain; a pair of which a row is not trained is left out."""
    figures = {row.system: row.figures for row in table.rows}
    results = []
    for gain in table.gains:
        if not {gain.without, gain.having} <= runs.keys():
            continue
        pairs = list(zip(runs[gain.without], runs[gain.having], strict=True))
        columns = list(pairs[0][0].figures)
        differences = [
            {column: having.figures[column] - without.figures[column] for column in columns}
            for without, having in pairs
        ]
        ours, deviation = _over_seeds(differences, columns)
        before, after = figures[gain.without], figures[gain.having]
        results.append(
            GainResult(
                *(gain.part, gain.without, gain.having),
                {column: after[column] - before[column] for column in before if column in after},
                *(ours, deviation),
                {having.seed: table.measure.compared(without.run, having.run, columns) for without, having in pairs},
                p_over_seeds([run.figures for run, _ in pairs], [run.figures for _, run in pairs], columns),
            )
        )
    return results


def _over_seeds(
    figures: Sequence[Mapping[str, float]], columns: Sequence[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """The mean and the standard deviation by column; no deviation of one seed."""
    over_seeds = {column: Figure(tuple(of_seed[column] for of_seed in figures)) for column in columns}
    deviations = {column: figure.deviation for column, figure in over_seeds.items() if figure.deviation is not None}
    return {column: figure.mean for column, figure in over_seeds.items()}, deviations


def _difference(ours: Mapping[str, float], row: Row) -> dict[str, float]:
    return {column: value - row.figures[column] for column, value in ours.items() if column in row.figures}


def p_over_seeds(
    baseline: Sequence[Mapping[str, float]], system: Sequence[Mapping[str, float]], columns: Sequence[str]
) -> dict[str, float]:
    """Welch's t-test of the figures of several seeds, by column; nothing for fewer than three seeds.

    The p-value is 1 where all figures are the same.
    """
    if min(len(baseline), len(system)) < 3:
        return {}
    return {column: welch(*([run[column] for run in runs] for runs in (baseline, system)))[1] for column in columns}
