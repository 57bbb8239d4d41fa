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
    by_paper: dict[str, list[Table]] = {}
    for table in tables():
        by_paper.setdefault(re.sub(r"_(table|figure)_\d+$", "", table.name), []).append(table)
    return {f"{paper}_tables": page(of_paper, records) for paper, of_paper in by_paper.items()}


def page(of_paper: Sequence[Table], records: Sequence[Record]) -> str:
    """The tables of a paper."""
    notes = dict.fromkeys(Path(table.verdict).relative_to("docs") for table in of_paper if table.verdict is not None)
    lines = [
        f"# {of_paper[0].title.partition(',')[0]}: the paper's tables",
        "",
        *(f"[What holds of the paper's claims](../{note.as_posix()})." for note in notes),
        "",
        f"'{NOT_RECORDED}': nobody has recorded a run of this configuration.",
        "An option beside the number of runs, such as `--stop-time-hours 2`, says for how long they trained.",
        "",
    ]
    for table in of_paper:
        lines += section(table, records)
    return "\n".join(lines).rstrip() + "\n"


def section(table: Table, records: Sequence[Record]) -> list[str]:
    """A table of a paper."""
    said = [f"`{table.command}` makes it."]
    if table.without is not None:
        said.append(f"Ours are without {table.without}.")
    lines = [f"## {table.title.partition(', ')[2]}", "", *said, ""]
    if not any(row.figures for row in table.rows):
        systems = f"Its {len(table.rows)} systems: {links_to_folders(table)}."
        return [*lines, f"The paper draws it, and prints no figure. {systems}", ""]
    if (names_of := crossed(table.rows)) is not None:
        return [*lines, *crossed_table(table, *names_of, records)]
    columns = {
        "system": [row.system for row in table.rows],
        f"the paper, {table.measure.heading}": [paper_figures(table, row) for row in table.rows],
        "ours": [our_figures(table, row, records) for row in table.rows],
        "largest dilation": [f"{row.dilation}" if row.dilation else NOTHING for row in table.rows],
        "parameters, the paper's": [f"{row.parameters:g}M" if row.parameters else NOTHING for row in table.rows],
        "configuration": [link(row) for row in table.rows],
    }
    columns = {heading: cells for heading, cells in columns.items() if any(text != NOTHING for text in cells)}
    return [*lines, *markdown(columns), ""]


def crossed(rows: Sequence[Row]) -> tuple[list[str], list[str]] | None:
    """The two names of each row, ``Books, RCRN``, where there is a row for each pair of them; else None."""
    firsts, seconds = ([*dict.fromkeys(row.system.partition(", ")[place] for row in rows)] for place in (0, 2))
    pairs = [f"{first}, {second}" for first in firsts for second in seconds]
    is_crossed = sorted(pairs) == sorted(row.system for row in rows) and min(len(firsts), len(seconds)) > 1
    return (firsts, seconds) if is_crossed else None


def crossed_table(table: Table, firsts: Sequence[str], seconds: Sequence[str], records: Sequence[Record]) -> list[str]:
    """A table with a line for each first name and a column for each second one: the paper's figures, and ours."""
    rows = {row.system: row for row in table.rows}

    def cell(row: Row) -> str:
        ours = recorded_figures(table, row, records)
        return paper_figures(table, row) + ("" if ours is None else f"; ours {ours}")

    columns = {"": list(firsts)}
    columns |= {second: [cell(rows[f"{first}, {second}"]) for first in firsts] for second in seconds}
    return [
        f"The paper's {table.measure.heading}, and ours where there are recorded runs:",
        "",
        *markdown(columns),
        "",
        f"Configurations: {links_to_folders(table)}.",
        "",
    ]


def paper_figures(table: Table, row: Row) -> str:
    """The paper's figures of a row, in the order of the table's columns; a dash where it has none."""
    form = table.measure.form
    if not row.figures:
        return NOTHING
    cells = (f"{row.figures[key]:{form}}" if key in row.figures else NOTHING for key in table.measure.columns)
    return " / ".join(cells) + (" (uncertain)" if row.uncertain else "")


def our_figures(table: Table, row: Row, records: Sequence[Record]) -> str:
    """Our recorded figures of a row, in the order of the table's columns; or why there are none."""
    if row.average is not None:
        return "the mean of the rows above"
    if row.configuration is None:
        return row.missing or "quoted by the paper"
    return recorded_figures(table, row, records) or NOT_RECORDED


def recorded_figures(table: Table, row: Row, records: Sequence[Record]) -> str | None:
    """Our recorded figures of a row, in the order of the table's columns; None where no run is recorded."""
    metric, configuration = table.measure.metric, row.configuration
    if metric is None or configuration is None or row.average is not None:
        return None
    path = configuration.path.relative_to(ROOT).as_posix()
    if not any(record.configuration == path for record in records):
        return None
    if row.variant is not None:
        # Runs with settings of their own (--cache-window …) are of something else.
        runs = [record for record in records if record.configuration == path and record.checkpoint == BEST]
        runs = [record for record in runs if record.differences in ({}, {row.variant: "true"})]
        group: Group | None = Group(tuple(runs), {})
    else:
        group = group_of(configuration, records) or longest_with_own_budget(configuration, records)
    if group is None:
        return None
    columns = [column for column in metric.columns if column.paper is not None]
    if table.measure.sets != ("test",):
        wanted = [(columns[0], subset) for subset in table.measure.sets]
    else:
        wanted = [(column, "test") for column in columns]
    if row.variant is not None:
        wanted = [(column, f"{subset} with {row.variant}") for column, subset in wanted]
    figures = [group.figure(column.key, subset) for column, subset in wanted]
    if not any(figures):
        return None
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


def links_to_folders(table: Table) -> str:
    """Links to the folders of a table's configurations, as seen from ``docs/results/``."""
    names = dict.fromkeys(row.configuration.dataset for row in table.rows if row.configuration is not None)
    return ", ".join(f"[{name}](../../configs/{name})" for name in names)
