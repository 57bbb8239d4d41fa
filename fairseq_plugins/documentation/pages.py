"""What is generated, and where it goes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError
from ..experiments.recorded_runs import Record
from ..tables.writing import markdown
from . import families, options_page, paper_tables, results_pages

_FAMILIES = re.compile(r"(<!-- generated: families -->\n).*?(<!-- end -->)", re.DOTALL)


def generated(checkout: Path, records: Sequence[Record]) -> dict[Path, str]:
    """Every page that is generated or has a generated part, with the text that it should have.

    Args:
        checkout: whose pages they are
        records: of its runs

    Raises:
        InputError: README has no place for the table of families.
    """
    readme, results = checkout / "README.md", checkout / "docs" / "results"
    text, count = _FAMILIES.subn(
        lambda part: f"{part[1]}{families.table(records)}\n{part[2]}", readme.read_text(encoding="utf-8")
    )
    if count != 1:
        raise InputError(f"{readme}: has no '<!-- generated: families -->' with its '<!-- end -->'")
    recorded, papers = results_pages.pages(records), paper_tables.pages(records)
    return {
        readme: text,
        checkout / "docs" / "options.md": options_page.page().rstrip() + "\n",
        results / "README.md": index(records, papers),
        **{results / f"{name}.md": page for name, page in (recorded | papers).items()},
    }


def index(records: Sequence[Record], papers: dict[str, str]) -> str:
    """The page that leads to all others in ``docs/results/``."""
    names = list(dict.fromkeys(record.dataset for record in records))
    systems = [{record.system for record in records if record.dataset == name} for name in names]
    counts = [sum(record.dataset == name for record in records) for name in names]
    columns = {
        "data set": [f"[{name}]({name}.md)" for name in names],
        "systems": [str(len(each)) for each in systems],
        "records": [f"{count:,}" for count in counts],
    }
    titles = [page.partition("\n")[0].removeprefix("# ") for page in papers.values()]
    return "\n".join(
        [
            "# Results",
            "",
            "`scripts/update_docs.sh` makes the pages of this folder from `results/` and `configs/tables/`.",
            "`scripts/evaluate.sh CONFIG --record` adds a run.",
            "",
            "## The papers' tables, and ours beside them",
            "",
            *(f"- [{title}]({name}.md)" for name, title in zip(papers, titles, strict=True)),
            "",
            "## Recorded runs",
            "",
            *(markdown(columns) if names else ["None yet."]),
            "",
            "## How to read them",
            "",
            "A row is a system: a configuration with its options and a checkpoint.",
            "A figure of several runs is their mean ± standard deviation; `runs` says of how many.",
            "Runs of one seed, on other machines or with other numbers of threads, count apart here.",
            "In comparisons over seeds they count as one.",
            "",
            "What a page leaves out is in `results/`, a file for each record:",
            "seed, every option, machine, threads, seconds, versions, revision and date,",
            "and beside it what single sentences scored.",
            "Seconds are of whatever else ran on the machine: [speed](../speed.md) compares on equal terms.",
            "",
            "Two systems are compared by",
            "`fairseq-plugins analysis seeds multi30k_de_en rnnsearch mc_rnn_3 --output work/seeds`.",
            "",
        ]
    )
