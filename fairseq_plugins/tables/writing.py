"""A paper's table with our figures beside the paper's: Markdown, CSV, JSON and a report.

``python -m fairseq_plugins.tables.writing TABLE --work DIR``, which ``reproduce`` runs at the end.
"""

from __future__ import annotations

import argparse
import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..experiments.command_line import run_module
from ..files import atomic_file, write_json
from ..scoring.metrics import Metric
from ..scoring.significance import Comparison
from ..versions import add_version_argument
from .rows import GainResult, Result, SeededRun, gains_of, load_runs, results_of
from .tables import SCALES, Table, load_table, trainable, training_options

FILES = ("table.md", "table.csv", "table.json", "report.html")
"""What is written of a table, in ``tables/<table>`` of the work folder."""

GAINS = "What each part gains"
"""The heading over the pairs of rows that the paper compares."""

SMALL_SCALE_NOTICE = (
    "Not the paper's setting: built-in sentences and small models (configs/small.yaml). This shows that every step "
    "runs; its figures say nothing about the paper's."
)


def main(arguments: list[str]) -> None:
    """Writes :data:`FILES`."""
    parser = argparse.ArgumentParser(prog="python -m fairseq_plugins.tables.writing", allow_abbrev=False)
    add_version_argument(parser)
    parser.add_argument("table")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", choices=SCALES, default="paper")
    parser.add_argument("--recipe")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    remaining, of_training = training_options(arguments)
    options = parser.parse_args(remaining)
    table = load_table(options.table, options.recipe, of_training, options.tune)
    if options.scale == "paper":
        table = trainable(table, options.data)
    runs = {
        row.system: load_runs(table, row, options.work, options.seeds, options.scale)
        for row in table.rows
        if row.configuration
    }
    rows = results_of(table, runs, options.scale)
    gains = gains_of(table, runs)
    columns, columns_of_gains = shown_columns(table, rows), shown_gains(table, gains)
    notes = notes_of(table, runs)
    folder = options.work / "tables" / table.folder
    notice = SMALL_SCALE_NOTICE if options.scale == "small" else None
    content: dict[str, Any] = {"table": table.name, "title": table.title, "notice": notice, "notes": notes}
    content |= {"rows": [asdict(row) for row in rows], "gains": [asdict(gain) for gain in gains]}
    text = "\n".join(
        [f"# {table.title}", "", *([f"**{notice}**", ""] if notice else []), *markdown(columns), ""]
        + [f"- {note}" for note in notes]
        + (["", f"## {GAINS}", "", *markdown(columns_of_gains)] if gains else [])
    )
    for name, written in (("table.md", text + "\n"), ("table.csv", comma_separated(table, rows))):
        with atomic_file(folder / name) as stream:
            stream.write(written)
    write_json(folder / "table.json", content)
    write_report(folder / "report.html", table, columns, columns_of_gains, notes, notice, runs)


def notes_of(table: Table, runs: Mapping[str, Sequence[SeededRun]]) -> list[str]:
    """What a reader of the figures has to know."""
    notes = []
    first = next(iter(runs.values()))
    prepared = [seeded[0].run.required_data.preparation for seeded in runs.values()]
    sizes = {preparation.splits["train"][preparation.count] for preparation in prepared} - {0}
    numbers = " or ".join(f"{number:,}" for number in sorted(sizes))
    notes += [f"Trained on {numbers} {prepared[0].examples}."] if sizes else []
    seeds = [run.seed for run in first]
    plural = "s" if len(seeds) > 1 else ""
    notes.append(
        f"Ours: seed{plural} {', '.join(map(str, seeds))}" + (", mean ± standard deviation." if plural else ".")
    )
    if table.recipe is not None:
        notes.append(f"Every row is trained by the recipe '{table.recipe}' of its configuration.")
    if table.tuning is not None:
        chosen = (f"{name}: {seeded[0].run.options[table.tuning.option]}" for name, seeded in runs.items())
        values = ", ".join(table.tuning.values)
        notes.append(
            f"--{table.tuning.option} of each row is the best of {values} on the validation set, seed {seeds[0]}: "
            f"{'; '.join(chosen)}."
        )
    if table.options:
        notes.append(f"Every row is trained with {shlex.join(table.options)}.")
    notes += [f"Ours are without {table.without}."] if table.without is not None else []
    notes += table.measure.notes(first[0].run)
    if table.baselines:
        metric = table.measure.metric
        test = Metric.significance_test if metric is None else metric.significance_test
        against = " and ".join(table.baselines)
        notes.append(f"p: {test} against {against} with the same seed, for each seed.")
        if len(seeds) >= 3:
            notes.append(f"p over seeds: Welch's t-test of the seeds' figures against those of {against}.")
    if table.verdict is not None:
        notes.append(f"What holds of the paper's claims, and how sure that is: {table.verdict}.")
    return notes


def shown_columns(table: Table, rows: Sequence[Result]) -> dict[str, list[str]]:
    """The table as text: heading → a cell for each row."""

    def p_cells(place: int) -> tuple[list[str], list[str]]:
        """Of each row against its baseline at a place, by seed and over the seeds."""
        baselines = {row.baselines[place] for row in table.rows if place < len(row.baselines)}
        by_seed, over_seeds = [], []
        for row, result in zip(table.rows, rows, strict=True):
            if row.system in baselines:
                by_seed.append("baseline")
                over_seeds.append("–")
                continue
            against = row.baselines[place] if place < len(row.baselines) else ""
            by_seed.append(p_by_seed(table, result.significance.get(against, {})))
            over_seeds.append(joined(result.over_seeds.get(against, {}), ".3f"))
        return by_seed, over_seeds

    form = table.measure.form
    columns = {
        "system": [row.system for row in rows],
        f"the paper, {table.measure.heading}": [joined(row.paper, form) for row in rows],
        "ours": [with_deviations(row.ours, row.deviation, form) for row in rows],
        "difference": [joined(row.difference, "+" + form) for row in rows],
        "largest dilation": [f"{row.dilation}" if row.dilation else "–" for row in table.rows],
        "parameters, the paper's": [f"{row.paper_parameters:g}M" if row.paper_parameters else "–" for row in rows],
        "parameters, ours": [f"{row.parameters:,}" if row.parameters else "–" for row in rows],
        "updates": [f"{row.updates:,}" if row.updates else "–" for row in rows],
        "hours": [f"{row.hours:.2f}" if row.hours is not None else "–" for row in rows],
    }
    for place, baseline in enumerate(table.baselines):
        further = f" against {baseline}" if len(table.baselines) > 1 else ""
        columns[f"p against {baseline}"], columns[f"p over seeds{further}"] = p_cells(place)
    columns["note"] = [row.note for row in rows]
    return without_empty(columns)


def shown_gains(table: Table, gains: Sequence[GainResult]) -> dict[str, list[str]]:
    """The gains as text: heading → a cell for each pair of rows."""
    form = "+" + table.measure.form
    columns = {
        "part": [gain.part for gain in gains],
        "without": [gain.without for gain in gains],
        "with": [gain.having for gain in gains],
        "the paper's gain": [joined(gain.paper, form) for gain in gains],
        "ours": [with_deviations(gain.ours, gain.deviation, form) for gain in gains],
        "p": [p_by_seed(table, gain.significance) for gain in gains],
        "p over seeds": [joined(gain.over_seeds, ".3f") for gain in gains],
    }
    return without_empty(columns)


def joined(values: Mapping[str, float], form: str) -> str:
    """A figure for each column."""
    return " / ".join(f"{value:{form}}" for value in values.values()) or "–"


def with_deviations(values: Mapping[str, float], deviations: Mapping[str, float], form: str) -> str:
    """Means over seeds with what they deviate by, where there are several."""
    spread = {column: f" ± {deviation:{form.lstrip('+')}}" for column, deviation in deviations.items()}
    return " / ".join(f"{value:{form}}{spread.get(column, '')}" for column, value in values.items()) or "–"


def p_by_seed(table: Table, significance: Mapping[int, Mapping[str, Comparison]]) -> str:
    """p-values of a row against another, each with what the row is."""
    seeds = (
        " / ".join(
            f"{one.p_value:.3f} {table.measure.comparative(column, one.difference)}" for column, one in of_seed.items()
        )
        for of_seed in significance.values()
    )
    return ", ".join(seeds) or "–"


def without_empty(columns: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The columns that say something in some row."""
    return {heading: cells for heading, cells in columns.items() if any(cell not in ("–", "") for cell in cells)}


def markdown(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(cells) for cells in rows_of(columns)]
    return [f"| {line} |" for line in lines]


def rows_of(columns: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The cells of each row."""
    return [list(cells) for cells in zip(*columns.values(), strict=True)]


def comma_separated(table: Table, rows: Sequence[Result]) -> str:
    """The table as CSV: numbers alone, one column for each."""
    # At small scale several sets are one.
    ours = list(next(row.ours for row in rows if row.ours))
    headings = ["system", *(f"paper_{column}" for column in table.measure.columns)]
    for column in ours:
        headings += [f"ours_{column}", f"deviation_{column}", f"difference_{column}"]
    headings += ["paper_parameters_millions", "parameters", "updates", "hours"]
    seeds = list(next(row.seeds for row in rows if row.seeds))
    # The first baseline is not named.
    names = ["", *(f"_against_{baseline}" for baseline in table.baselines[1:])][: len(table.baselines)]
    headings += [f"p_{column}_seed_{seed}{name}" for name in names for seed in seeds for column in ours]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, headings, lineterminator="\n")
    writer.writeheader()
    for described, row in zip(table.rows, rows, strict=True):
        cells: dict[str, Any] = {"system": row.system}
        cells |= {f"paper_{column}": value for column, value in row.paper.items()}
        for column, value in row.ours.items():
            cells[f"ours_{column}"] = round(value, 4)
            for kind in ("deviation", "difference"):
                if column in (values := getattr(row, kind)):
                    cells[f"{kind}_{column}"] = round(values[column], 4)
        cells |= {
            "paper_parameters_millions": row.paper_parameters,
            "parameters": row.parameters,
            "updates": row.updates,
            "hours": None if row.hours is None else round(row.hours, 4),
        }
        for name, baseline in zip(names, described.baselines, strict=False):
            for seed, of_seed in row.significance.get(baseline, {}).items():
                cells |= {f"p_{column}_seed_{seed}{name}": round(one.p_value, 4) for column, one in of_seed.items()}
        writer.writerow(cells)
    return stream.getvalue()


def write_report(
    path: Path,
    table: Table,
    columns: Mapping[str, Sequence[str]],
    gains: Mapping[str, Sequence[str]],
    notes: Sequence[str],
    notice: str | None,
    runs: Mapping[str, Sequence[SeededRun]],
) -> None:
    """Writes the table's report: learning curves, scores by length, attention, samples, and how to do it again."""
    # Not at the head of the file: they import PyTorch, which what is said before does not wait for.
    from ..report import confusion_matrices, experiment, page, progress, sections
    from ..report.surprise import surprise_figures

    variants = {row.system for row in table.rows if row.variant is not None}
    first = table.measure.systems({name: seeded[0].run for name, seeded in runs.items() if name not in variants})
    # Differences are to the baseline.
    first = dict(sorted(first.items(), key=lambda item: item[0] not in table.baselines[:1]))
    data = next(iter(first.values())).required_data
    figures = [sections.learning_curves_figure(first)]
    figures += progress.figures(first, table.measure.name)
    is_of_pairs = data.preparation.kind == "pairs"
    if table.measure.metric is not None and is_of_pairs:
        # More would hide each other; the last rows are the paper's own systems.
        some = [list(first)[0], *list(first)[1:][-3:]]
        figures += sections.length_figures({name: first[name] for name in some}, data, table.measure.metric)
    last, samples = list(first)[-1], []
    if is_of_pairs:
        samples = sections.aligned_samples(first, data, experiment.SAMPLES)
        figures += sections.attention_figures(last, first[last], sections.example(data, experiment.SAMPLES))
    elif len({seeded[0].run.required_data.folder for seeded in runs.values()}) == 1:
        figures += confusion_matrices.figures(first, data)
    figures += surprise_figures(first)
    experiments = [experiment.experiment_of(name, run) for name, run in first.items()]
    shown = [page.ReportTable("The table", list(columns), rows_of(columns), list(notes))]
    shown += [page.ReportTable(GAINS, list(gains), rows_of(gains), [])] if gains else []
    subtitle = f"{len(first)} system{'s' if len(first) > 1 else ''}, reproduced with {table.command}"
    page.write(page.Report(table.title, subtitle, notice, shown, figures, samples, experiments), path)


if __name__ == "__main__":
    run_module(main)
