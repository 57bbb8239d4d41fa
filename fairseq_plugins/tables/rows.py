"""The rows of a paper's table with what our experiments have come to."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..experiments import configuration as configurations
from ..experiments import results
from ..scoring.significance import Comparison, welch
from .tables import Row, Table


@dataclass(frozen=True)
class SeededRun:
    """One experiment of a row.

    Attributes:
        seed: of its training
        work: its work folder
        found: its ``results.json``
        figures: ours, by column
    """

    seed: int
    work: Path
    found: Mapping[str, Any]
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
        significance: against the table's baseline with the same seed: by seed, then by column
        over_seeds: of three seeds or more, the p-value of Welch's t-test against the baseline's, by column
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
    significance: Mapping[int, Mapping[str, Comparison]] = field(default_factory=dict)
    over_seeds: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


def load_runs(table: Table, row: Row, work: Path, seeds: Sequence[int], scale: str) -> list[SeededRun]:
    """What the experiments of a row have left.

    Raises:
        InputError: an experiment was not trained, or not evaluated.
    """
    configuration = configurations.load(row.config)
    runs = []
    for seed in seeds:
        folder = work / configuration.dataset / configuration.model / f"seed_{seed}"
        found = results.load(folder)
        if "updates" not in found:
            raise InputError(f"{folder}: no experiment there; run {table.command}")
        runs.append(SeededRun(seed, folder, found, figures_of(table, row, folder, found, scale)))
    return runs


def figures_of(table: Table, row: Row, work: Path, found: Mapping[str, Any], scale: str) -> dict[str, float]:
    """Our figures of one experiment, by column.

    Raises:
        InputError: a set was not evaluated.
    """
    try:
        return table.measure.figures_of(row.flow, row.variant, work, found, scale == "small")
    except (KeyError, FileNotFoundError) as error:
        raise InputError(f"{work}: {error} is missing there; run {table.command}") from None


def result_of(table: Table, row: Row, runs: Mapping[str, Sequence[SeededRun]], scale: str) -> Result:
    """A row of the table with what came out."""
    note = "the paper's two off-diagonal figures may be the other way round" if row.uncertain else ""
    if row.config is None:
        note = row.missing or "quoted by the paper"
        return Result(row.system, row.figures, paper_parameters=row.parameters, note=note)
    own = runs[row.system]
    columns = list(own[0].figures)
    ours = {column: statistics.fmean(run.figures[column] for run in own) for column in columns}
    deviation = {column: statistics.stdev(run.figures[column] for run in own) for column in columns if len(own) > 1}
    difference = {}
    if scale == "paper":
        difference = {column: ours[column] - row.figures[column] for column in columns if column in row.figures}
    significance = {}
    # Of a variant there is nothing to compare with.
    if row.baseline in runs and row.system != row.baseline and row.variant is None:
        for run, baseline in zip(own, runs[row.baseline], strict=True):
            significance[run.seed] = table.measure.compared(baseline.work, run.work, run.found, columns)
    over_seeds = {}
    if row.baseline in runs and row.system != row.baseline:
        over_seeds = p_over_seeds(runs[row.baseline], own, columns)
    return Result(
        row.system,
        row.figures,
        ours,
        deviation,
        difference,
        row.parameters,
        own[0].found["parameters"],
        round(statistics.fmean(run.found["updates"] for run in own)),
        statistics.fmean(run.found["train_seconds"] for run in own) / 3600,
        {run.seed: run.figures for run in own},
        significance,
        over_seeds,
        note,
    )


def p_over_seeds(
    baseline: Sequence[SeededRun], system: Sequence[SeededRun], columns: Sequence[str]
) -> dict[str, float]:
    """Welch's t-test of the figures of several seeds, by column; nothing for fewer than three seeds.

    The p-value is 1 where all figures are the same.
    """
    if min(len(baseline), len(system)) < 3:
        return {}
    return {
        column: welch(*([run.figures[column] for run in runs] for runs in (baseline, system)))[1] for column in columns
    }
