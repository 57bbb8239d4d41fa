"""A paper's table with our figures beside the paper's: Markdown, CSV, JSON and a report.

``python -m fairseq_plugins.experiments.table_results TABLE --work DIR``, which scripts/reproduce.sh runs at the end.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..analysis.significance import Comparison, paired_bootstrap, paired_bootstrap_bleu
from ..errors import InputError
from ..files import atomic_file, read_lines
from ..scoring.rouge import sentence_rouge
from . import commands, config, experiment_report, pictures, report, results
from .evaluate import References
from .reproduce import SCALES
from .tables import Row, Table, load_table

SAMPLES = 5
SMALL_SCALE_NOTICE = (
    "Not the paper's setting: built-in sentences and small models (configs/small). This shows that every step runs; "
    "its figures say nothing about the paper's."
)
METRIC_NAMES = {"bleu": "tokenised BLEU", "rouge": "ROUGE-1 / -2 / -L F1", "entropy": "entropy in nats"}


@dataclass(frozen=True)
class Run:
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
    note: str = ""


def main(arguments: list[str]) -> None:
    """Writes ``table.md``, ``table.csv``, ``table.json`` and ``report.html``."""
    parser = argparse.ArgumentParser(prog="python -m fairseq_plugins.experiments.table_results", allow_abbrev=False)
    parser.add_argument("table")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", choices=SCALES, default="paper")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    options = parser.parse_args(arguments)
    table = load_table(options.table)
    runs = {
        row.system: load_runs(table, row, options.work, options.seeds, options.scale)
        for row in table.rows
        if row.config
    }
    rows = [result_of(table, row, runs, options.scale) for row in table.rows]
    columns = shown_columns(table, rows)
    notes = notes_of(table, runs)
    folder = options.work / "tables" / table.name
    notice = SMALL_SCALE_NOTICE if options.scale == "small" else None
    content = {"table": table.name, "title": table.title, "notice": notice, "notes": notes}
    content |= {"rows": [asdict(row) for row in rows]}
    text = "\n".join(
        [f"# {table.title}", "", *([f"**{notice}**", ""] if notice else []), *markdown(columns), ""]
        + [f"- {note}" for note in notes]
    )
    for name, written in (
        ("table.md", text + "\n"),
        ("table.csv", comma_separated(table, rows)),
        ("table.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n"),
    ):
        with atomic_file(folder / name) as stream:
            stream.write(written)
    report.write(report_of(table, columns, notes, notice, runs), folder / "report.html")


def load_runs(table: Table, row: Row, work: Path, seeds: Sequence[int], scale: str) -> list[Run]:
    """What the experiments of a row have left.

    Raises:
        InputError: an experiment was not trained, or not evaluated.
    """
    configuration = config.load(row.config)
    runs = []
    for seed in seeds:
        folder = work / configuration.dataset / configuration.model / f"seed_{seed}"
        found = results.load(folder)
        if "updates" not in found:
            raise InputError(f"{folder}: no experiment there; run scripts/reproduce.sh {table.name}")
        runs.append(Run(seed, folder, found, figures_of(table, row, folder, found, scale)))
    return runs


def our_columns(table: Table, scale: str) -> tuple[str, ...]:
    """What we have figures of: the table's columns; at small scale one test set instead of several."""
    return ("test",) if len(table.sets) > 1 and scale == "small" else tuple(table.columns)


def figures_of(table: Table, row: Row, work: Path, found: Mapping[str, Any], scale: str) -> dict[str, float]:
    """Our figures of one experiment, by column.

    Raises:
        InputError: a set was not evaluated.
    """
    columns = our_columns(table, scale)
    try:
        if table.metric == "entropy":
            entropies = json.loads((work / "analysis" / "entropy.json").read_text(encoding="utf-8"))
            return {"entropy": entropies["entropy"][row.flow]}
        if table.metric == "rouge":
            return {column: found[column] for column in columns}
        if columns in (("bleu",), ("test",)):
            return {columns[0]: found["bleu_tokenized"]}
        split_of = data_of(work, found).preparation.split_of
        sets = {column: found if split_of(column) == "test" else found["subsets"][column] for column in columns}
        return {column: scores["bleu_tokenized"] for column, scores in sets.items()}
    except (KeyError, FileNotFoundError) as error:
        raise InputError(f"{work}: {error} is missing there; run scripts/reproduce.sh {table.name}") from None


def result_of(table: Table, row: Row, runs: Mapping[str, Sequence[Run]], scale: str) -> Result:
    """A row of the table with what came out."""
    note = "the paper's two off-diagonal figures may stand the other way round" if row.uncertain else ""
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
    if table.baseline is not None and row.system != table.baseline:
        for run, baseline in zip(own, runs[table.baseline], strict=True):
            significance[run.seed] = compared(table, columns, baseline, run)
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
        note,
    )


def compared(table: Table, columns: Sequence[str], baseline: Run, run: Run) -> dict[str, Comparison]:
    """Whether a row differs from the baseline of the same seed by more than chance, by column."""
    data = data_of(run.work, run.found)
    language = data.preparation.target_lang

    def written(name: str) -> list[list[str]]:
        return [list(read_lines(one.work / "generate" / name)) for one in (baseline, run)]

    if table.metric == "rouge":
        references = References.load(data, "test")
        theirs, ours = (sentence_rouge(lines, references.text) for lines in written(f"test.{language}"))
        return {name: paired_bootstrap(theirs[:, place], ours[:, place]) for place, name in enumerate(columns)}
    found = {}
    for column in columns:
        subset = "test" if column == "bleu" else data.preparation.split_of(column)
        references = References.load(data, subset)
        theirs, ours = written(f"{subset}.tok.{language}")
        found[column] = paired_bootstrap_bleu(theirs, ours, references.tokens, lowercase=references.lowercase)
    return found


def data_of(work: Path, found: Mapping[str, Any]) -> commands.PreparedData:
    """The data that an experiment was made with.

    Raises:
        InputError: it is not there any more.
    """
    data = results.prepared_data(found)
    if data is None:
        raise InputError(f"{work}: its prepared data is not there any more; prepare it again")
    return data


def notes_of(table: Table, runs: Mapping[str, Sequence[Run]]) -> list[str]:
    """What a reader of the figures has to know."""
    notes = []
    first = next(iter(runs.values()))
    found = first[0].found
    pairs = {data_of(own[0].work, own[0].found).preparation.splits["train"]["kept"] for own in runs.values()}
    notes.append(f"Trained on {' or '.join(f'{number:,}' for number in sorted(pairs))} sentence pairs.")
    seeds = [run.seed for run in first]
    plural = "s" if len(seeds) > 1 else ""
    notes.append(
        f"Ours: seed{plural} {', '.join(map(str, seeds))}" + (", mean ± standard deviation." if plural else ".")
    )
    for key in ("bleu_tokenized_signature", "rouge_signature"):
        if key in found and table.metric != "entropy":
            notes.append(f"{METRIC_NAMES[table.metric]}: {found[key]}.")
    if table.metric == "entropy":
        notes.append(
            "Forced decoding of the test set's references; natural logarithm; mean over tokens, then sentences."
        )
    if table.baseline is not None:
        notes.append(f"p: paired bootstrap (1,000 samples) against {table.baseline} with the same seed, for each seed.")
    return notes


def shown_columns(table: Table, rows: Sequence[Result]) -> dict[str, list[str]]:
    """The table as text: heading → a cell for each row."""

    def joined(values: Mapping[str, float], form: str) -> str:
        return " / ".join(f"{value:{form}}" for value in values.values()) or "–"

    def our_cell(row: Result, form: str) -> str:
        cells = []
        for column, value in row.ours.items():
            spread = f" ± {row.deviation[column]:{form}}" if column in row.deviation else ""
            cells.append(f"{value:{form}}{spread}")
        return " / ".join(cells) or "–"

    def p_cell(row: Result) -> str:
        if row.system == table.baseline:
            return "baseline"
        by_seed = [
            " / ".join(
                f"{one.p_value:.3f} {'better' if one.difference > 0 else 'worse' if one.difference < 0 else 'equal'}"
                for one in of_seed.values()
            )
            for of_seed in row.significance.values()
        ]
        return ", ".join(by_seed) or "–"

    form = ".3f" if table.metric == "entropy" else ".2f"
    sets = "" if len(table.columns) == 1 or table.metric == "rouge" else f" ({' / '.join(table.columns)})"
    columns = {
        "system": [row.system for row in rows],
        f"the paper, {METRIC_NAMES[table.metric]}{sets}": [joined(row.paper, form) for row in rows],
        "ours": [our_cell(row, form) for row in rows],
        "difference": [joined(row.difference, "+" + form) for row in rows],
        "parameters, the paper's": [f"{row.paper_parameters:g}M" if row.paper_parameters else "–" for row in rows],
        "parameters, ours": [f"{row.parameters:,}" if row.parameters else "–" for row in rows],
        "updates": [f"{row.updates:,}" if row.updates else "–" for row in rows],
        "hours": [f"{row.hours:.2f}" if row.hours is not None else "–" for row in rows],
        f"p against {table.baseline}": [p_cell(row) for row in rows],
        "note": [row.note for row in rows],
    }
    # A column that says nothing in any row is left out.
    return {heading: cells for heading, cells in columns.items() if any(cell not in ("–", "") for cell in cells)}


def markdown(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(cells) for cells in zip(*columns.values(), strict=True)]
    return [f"| {line} |" for line in lines]


def comma_separated(table: Table, rows: Sequence[Result]) -> str:
    """The table as CSV: numbers alone, one column for each."""
    # At small scale several sets are one.
    ours = list(next(row.ours for row in rows if row.ours))
    headings = ["system", *(f"paper_{column}" for column in table.columns)]
    for column in ours:
        headings += [f"ours_{column}", f"deviation_{column}", f"difference_{column}"]
    headings += ["paper_parameters_millions", "parameters", "updates", "hours"]
    seeds = list(next(row.seeds for row in rows if row.seeds))
    headings += [f"p_{column}_seed_{seed}" for seed in seeds for column in ours if table.baseline]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, headings, lineterminator="\n")
    writer.writeheader()
    for row in rows:
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
        for seed, of_seed in row.significance.items():
            cells |= {f"p_{column}_seed_{seed}": round(one.p_value, 4) for column, one in of_seed.items()}
        writer.writerow(cells)
    return stream.getvalue()


def report_of(
    table: Table,
    columns: Mapping[str, Sequence[str]],
    notes: Sequence[str],
    notice: str | None,
    runs: Mapping[str, Sequence[Run]],
) -> report.Report:
    """The table's report: learning curves, BLEU by length, attention, samples, and how to do it again."""
    # The rows of a table may be of one model.
    works = {name: own[0].work for name, own in runs.items()}
    if table.metric == "entropy":
        works = {"DPN-S2S": next(iter(works.values()))}
    # Differences are to the baseline.
    works = dict(sorted(works.items(), key=lambda item: item[0] != table.baseline))
    data = data_of(next(iter(works.values())), next(iter(runs.values()))[0].found)
    figures = [experiment_report.learning_curves_figure(works)]
    if table.metric == "bleu":
        # More would hide each other; the last rows are the paper's own systems.
        some = [list(works)[0], *list(works)[1:][-3:]]
        figures.append(pictures.length_figure({name: works[name] for name in some}, data))
    last = list(works)[-1]
    samples = pictures.aligned_samples(works, data, SAMPLES)
    figures += pictures.attention_figures(last, works[last], pictures.example(data, SAMPLES))
    experiments = [experiment_report.experiment_of(name, work) for name, work in works.items()]
    rows = [list(cells) for cells in zip(*columns.values(), strict=True)]
    shown = report.ReportTable("The table", list(columns), rows, list(notes))
    subtitle = f"{len(works)} system{'s' if len(works) > 1 else ''}, reproduced with scripts/reproduce.sh {table.name}"
    return report.Report(table.title, subtitle, notice, [shown], figures, samples, experiments)


if __name__ == "__main__":
    commands.main_of(main)
