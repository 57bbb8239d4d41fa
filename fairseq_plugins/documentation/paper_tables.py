"""The papers' tables with our recorded figures beside theirs: a page in ``docs/results/`` for each paper."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from ..experiments.groups_of_runs import Group, group_of, longest_with_own_budget
from ..experiments.recorded_runs import BEST, Record
from ..package_files import ROOT
from ..tables.tables import TABLES, Row, Table, load_table
from ..tables.writing import markdown
from .results_pages import NOTHING, differing

NOT_RECORDED = "not recorded yet"


@functools.cache
def tables() -> tuple[Table, ...]:
    """The papers' tables, in the order of their names."""
    return tuple(load_table(path.stem) for path in sorted(TABLES.glob("*.yaml")))


def pages(records: Sequence[Record]) -> dict[str, str]:
    """The name of each paper's page → its Markdown."""
    sections: dict[str, list[str]] = {}
    for table in tables():
        paper = re.sub(r"_(table|figure)_\d+$", "", table.name)
        if f"{paper}_tables" not in sections:
            title = table.title.partition(",")[0]
            sections[f"{paper}_tables"] = [
                f"# {title}: the paper's tables",
                "",
                f"“{NOT_RECORDED}”: nobody has recorded a run of this configuration.",
                "An option beside the number of runs: they trained for another time than the configuration says.",
                "",
            ]
        sections[f"{paper}_tables"] += section(table, records)
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in sections.items()}


def section(table: Table, records: Sequence[Record]) -> list[str]:
    """A table of a paper."""
    said = [f"`{table.command}` makes it."]
    if table.verdict is not None:
        said.append(f"[What holds of the paper's claims](../{Path(table.verdict).relative_to('docs').as_posix()}).")
    if table.without is not None:
        said.append(f"Ours are without {table.without}.")
    lines = [f"## {table.title.partition(', ')[2]}", "", *said, ""]
    if not any(row.figures for row in table.rows):
        names = dict.fromkeys(row.configuration.dataset for row in table.rows if row.configuration is not None)
        links = ", ".join(f"[{name}](../../configs/{name})" for name in names)
        return [*lines, f"The paper draws it, and prints no figure. Its {len(table.rows)} systems: {links}.", ""]
    columns = {
        "system": [row.system for row in table.rows],
        f"the paper, {table.measure.heading}": [paper_figures(table, row) for row in table.rows],
        "ours": [our_figures(table, row, records) for row in table.rows],
        "parameters, the paper's": [f"{row.parameters:g}M" if row.parameters else NOTHING for row in table.rows],
        "configuration": [link(row) for row in table.rows],
    }
    columns = {heading: cells for heading, cells in columns.items() if any(text != NOTHING for text in cells)}
    return [*lines, *markdown(columns), ""]


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
    configuration = row.configuration
    if configuration is None:
        return row.missing or "quoted by the paper"
    path = configuration.path.relative_to(ROOT).as_posix()
    if metric is None or not any(record.configuration == path for record in records):
        return NOT_RECORDED
    if row.variant is not None:
        # Runs with settings of their own (--cache-window …) are of something else.
        runs = [record for record in records if record.configuration == path and record.checkpoint == BEST]
        runs = [record for record in runs if record.differences in ({}, {row.variant: "true"})]
        group: Group | None = Group(tuple(runs), {})
    else:
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
    """A link to a row's configuration, as seen from ``docs/results/``."""
    if row.configuration is None:
        return NOTHING
    path = row.configuration.path.relative_to(ROOT).as_posix()
    return f"[{path.removeprefix('configs/')}](../../{path})"
