"""``docs/results.md``: every recorded run, beside the papers' figures."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..experiments import configuration as configurations
from ..experiments.record_groups import Group, group_of, groups, longest_with_own_budget
from ..experiments.records import BEST, Record
from ..package_files import ROOT
from ..scoring.metrics import Column, metrics_of
from ..tables.tables import TABLES, Row, Table, load_table
from ..tables.writing import markdown

NOT_RECORDED = "not recorded yet"
NOTHING = "–"


def page(records: Sequence[Record]) -> str:
    """The page as Markdown."""
    sections = [
        *recorded_sections(records),
        "## The papers' tables",
        "",
        *(line for table in tables() for line in table_section(table, records)),
        "## Every run",
        "",
        *runs(records),
    ]
    return "\n".join(
        [
            "# Results",
            "",
            "`scripts/update_docs.sh` makes this page of the files in `results/` and `configs/tables/`.",
            "`scripts/evaluate.sh CONFIG --record` adds a run.",
            "",
            "A figure of several runs is their mean ± standard deviation, with the number of runs. Runs of one seed, "
            "on other machines or with other numbers of threads, count apart here; in comparisons they count as one. "
            f"“{NOT_RECORDED}” means that nobody has recorded a run of this configuration. An option beside the "
            "number of runs says that they trained for another time than the configuration says.",
            "",
            "Times are of whatever machine made a run, with whatever else ran on it: [speed](speed.md) compares on "
            "equal terms. Sentences a second are those of the decoding of the set that was decoded last.",
            "",
            *contents(sections),
            "",
            *sections,
        ]
    )


def contents(sections: Sequence[str]) -> list[str]:
    """A list of links to the sections, and below each one to its parts."""
    links = []
    for line in sections:
        marks, _, title = line.partition(" ")
        if marks in ("##", "###"):
            # As GitHub names the anchors of headings.
            anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            links.append(f"{'  ' * (len(marks) - 2)}- [{title}](#{anchor})")
    return links


@functools.cache
def tables() -> tuple[Table, ...]:
    """The papers' tables, in the order of their names."""
    return tuple(load_table(path.stem) for path in sorted(TABLES.glob("*.yaml")))


def recorded_sections(records: Sequence[Record]) -> list[str]:
    """A section for each data set that has records: a row for each group of runs."""
    lines = ["## Recorded runs", ""]
    for dataset in dict.fromkeys(record.dataset for record in records):
        own = [record for record in records if record.dataset == dataset]
        lines += [f"### {dataset}", ""]
        for subset in dict.fromkeys(name for record in own for name in record.scores):
            some = [record for record in own if subset in record.scores]
            lines += [
                *([f"Set: {subset}.", ""] if subset != "test" else []),
                *markdown(recorded_rows(some, subset)),
                "",
            ]
        lines += [*(f"- {note}" for note in notes(own)), ""]
    return lines if records else [*lines, "None yet.", ""]


def recorded_rows(records: Sequence[Record], subset: str) -> dict[str, list[str]]:
    """The recorded runs of one set as a table: heading → a cell for each group."""
    found = groups(records)
    columns = columns_of(records, subset)
    first = [
        next((column, figure) for column in columns if (figure := group.figure(column.key, subset))) for group in found
    ]
    table = {
        "system": [f"`{group.system}`" for group in found],
        "options that differ": [differing(group.differences) for group in found],
        "checkpoint": [group.checkpoint if group.configuration else "" for group in found],
        **{column.label: [cell(group, column, subset) for group in found] for column in columns},
        "range": [range_of(group, column, subset) for group, (column, _) in zip(found, first, strict=True)],
        "runs": [figure.runs for _, figure in first],
        "parameters": [count(group.records[0].parameters) for group in found],
        "updates": [extremes([record.updates for record in group.records]) for group in found],
        "training seconds": [extremes([record.train_seconds for record in group.records]) for group in found],
        "sentences a second": [
            extremes([record.decode_sentences_per_second for record in group.records]) for group in found
        ],
        "note": ["carried over" if group.records[0].carried_over else "" for group in found],
    }
    return {heading: cells for heading, cells in table.items() if any(text not in ("", NOTHING) for text in cells)}


def columns_of(records: Sequence[Record], subset: str) -> list[Column]:
    """The numbers that records have of a set."""
    keys = {key for record in records for key in record.scores.get(subset, {})}
    return [column for metric in metrics_of(keys) for column in metric.columns if column.key in keys]


def cell(group: Group, column: Column, subset: str) -> str:
    """A number of a group."""
    figure = group.figure(column.key, subset)
    return NOTHING if figure is None else figure.text(column.form)


def range_of(group: Group, column: Column, subset: str) -> str:
    """From the lowest number to the highest, where there are several runs."""
    figure = group.figure(column.key, subset)
    return "" if figure is None or figure.deviation is None else figure.range(column.form)


def differing(options: Mapping[str, str | None]) -> str:
    """Options as a command line would have them."""
    shown = (f"`--{key} {value}`" if value is not None else f"without `--{key}`" for key, value in options.items())
    return ", ".join(shown)


def count(number: int | None) -> str:
    """A number with its thousands apart."""
    return NOTHING if number is None else f"{number:,}"


def extremes(numbers: Sequence[float | None]) -> str:
    """The lowest and the highest of the numbers that are known; early stopping makes trainings differ."""
    known = [number for number in numbers if number is not None]
    return " to ".join(dict.fromkeys(f"{end(known):,.0f}" for end in (min, max))) if known else NOTHING


def notes(records: Sequence[Record]) -> list[str]:
    """What to know of the runs of a data set: signatures, and what single records say."""
    lines = []
    for record in records:
        for subset, scores in record.scores.items():
            of = "" if subset == "test" else f" on {subset}"
            labels = {key: label for metric in metrics_of(scores) for key, label in metric.signature_labels.items()}
            lines += [f"{label}{of}: `{scores[key]}`." for key, label in labels.items() if key in scores]
        lines += [record.note] if record.note else []
        lines += [f"Carried over: {record.carried_over}"] if record.carried_over else []
    return list(dict.fromkeys(lines))


def table_section(table: Table, records: Sequence[Record]) -> list[str]:
    """A paper's table with our recorded figures."""
    ours = [our_figures(table, row, records) for row in table.rows]
    columns = {
        "system": [row.system for row in table.rows],
        f"the paper, {table.measure.heading}": [paper_figures(table, row) for row in table.rows],
        "ours": ours,
        "parameters, the paper's": [f"{row.parameters:g}M" if row.parameters else NOTHING for row in table.rows],
        "configuration": [link(row) for row in table.rows],
    }
    columns = {heading: cells for heading, cells in columns.items() if any(text != NOTHING for text in cells)}
    made = f"`{table.command}` makes it."
    if table.verdict is not None:
        page = Path(table.verdict).relative_to("docs").as_posix()
        made += f" [What holds of the paper's claims]({page})."
    if table.without is not None:
        made += f" Ours are without {table.without}."
    return [f"### {table.title}", "", made, "", *markdown(columns), ""]


def paper_figures(table: Table, row: Row) -> str:
    """The paper's figures of a row, in the order of the table's columns; a dash where it has none."""
    form = table.measure.form
    if not row.figures:
        return NOTHING
    cells = (f"{row.figures[key]:{form}}" if key in row.figures else NOTHING for key in table.measure.columns)
    return " / ".join(cells) + (" (uncertain)" if row.uncertain else "")


def our_figures(table: Table, row: Row, records: Sequence[Record]) -> str:
    """Our recorded figures of a row, in the order of the table's columns."""
    metric = table.measure.metric
    if row.average is not None:
        return "the mean of the rows above"
    if row.config is None:
        return row.missing or "quoted by the paper"
    path = Path(row.config).relative_to(ROOT).as_posix()
    if metric is None or not any(record.configuration == path for record in records):
        return NOT_RECORDED
    if row.variant is not None:
        # Runs with settings of their own (--cache-window …) are of something else.
        own = [record for record in records if record.configuration == path and record.checkpoint == BEST]
        own = [record for record in own if record.differences in ({}, {row.variant: "true"})]
        group: Group | None = Group(tuple(own), {})
    else:
        configuration = configurations.load(row.config)
        group = group_of(configuration, records) or longest_with_own_budget(configuration, records)
    if group is None:
        return NOT_RECORDED
    columns = [column for column in metric.columns if column.paper is not None]
    if table.measure.sets != ("test",):
        wanted = [(columns[0], subset) for subset in table.measure.sets]
    else:
        wanted = [(column, "test") for column in columns]
    if row.variant is not None:
        wanted = [(column, f"{subset} with {row.variant}") for column, subset in wanted]
    figures = [group.figure(column.key, subset) for column, subset in wanted]
    if not any(figures):
        return NOT_RECORDED
    cells = (
        figure.text(column.form) if figure else NOTHING for figure, (column, _) in zip(figures, wanted, strict=True)
    )
    told = [next(filter(None, figures)).runs, *([differing(group.differences)] if group.differences else [])]
    return f"{' / '.join(cells)} ({', '.join(told)})"


def link(row: Row) -> str:
    """A link to a row's configuration, as seen from ``docs/``."""
    if row.config is None:
        return NOTHING
    path = Path(row.config).relative_to(ROOT).as_posix()
    return f"[{path.removeprefix('configs/')}](../{path})"


def runs(records: Sequence[Record]) -> list[str]:
    """A row for each record."""
    if not records:
        return ["None yet.", ""]
    columns = {
        "run": [f"`{record.dataset}/{record.system}`" for record in records],
        "seed": [str(record.seed) if record.seed is not None else NOTHING for record in records],
        "options that differ": [differing(record.differences) for record in records],
        "checkpoint": [record.checkpoint if record.configuration else NOTHING for record in records],
        "scores": [scores_text(record) for record in records],
        "updates": [count(record.updates) for record in records],
        "seconds": [f"{record.train_seconds:,.0f}" if record.train_seconds else NOTHING for record in records],
        "machine": [machine(record) for record in records],
        "revision": [short(record.revision) for record in records],
        "recorded": ["carried over" if record.carried_over else record.date or NOTHING for record in records],
    }
    return [*markdown(columns), ""]


def scores_text(record: Record) -> str:
    """Every number of a record."""
    parts = []
    for subset, scores in record.scores.items():
        columns = columns_of([record], subset)
        numbers = ", ".join(f"{column.label} {scores[column.key]:{column.form}}" for column in columns)
        parts.append(numbers if subset == "test" else f"{subset}: {numbers}")
    return "; ".join(parts)


def machine(record: Record) -> str:
    """What a training computed on."""
    processor = record.machine.get("processor", "")
    device = record.device or ""
    return ", ".join(filter(None, [processor, device])) or NOTHING


def short(revision: str | None) -> str:
    """The beginning of a commit's name; ``-dirty`` stays."""
    if revision is None:
        return NOTHING
    name, dash, dirty = revision.partition("-")
    return f"{name[:9]}{dash}{dirty}"
