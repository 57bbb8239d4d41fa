"""What is generated, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..errors import InputError
from ..experiments.recorded_runs import Record
from ..tables.writing import markdown
from . import families, options_page, paper_tables, quick_start, results_pages

_PARTS: Mapping[str, Callable[[Sequence[Record]], str]] = {"families": families.table, "quick start": quick_start.part}
"""The generated parts of README."""


def generated(checkout: Path, records: Sequence[Record]) -> dict[Path, str]:
    """Every page that is generated or has a generated part, with the text that it should have.

    Args:
        checkout: whose pages they are
        records: of its runs

    Raises:
        InputError: README has no place for one of its parts.
    """
    readme, results = checkout / "README.md", checkout / "docs" / "results"
    text = readme.read_text(encoding="utf-8")
    for name, part in _PARTS.items():
        head, begin, rest = text.partition(f"<!-- generated: {name} -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        if not end:
            raise InputError(f"{readme}: has no '<!-- generated: {name} -->' with its '<!-- end -->'")
        text = f"{head}{begin}{part(records)}\n{end}{tail}"
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
        "data set": [f"[{results_pages.title(name)}]({name}.md)" for name in names],
        "systems": [str(len(of_data_set)) for of_data_set in systems],
        "records": [f"{count:,}" for count in counts],
    }
    titles = [page.partition(": the paper's tables\n")[0].removeprefix("# ") for page in papers.values()]
    return "\n".join(
        [
            "# Results",
            "",
            "What we have trained, and what the papers print.",
            "",
            "## The papers' tables, with ours beside them",
            "",
            *(f"- [{title}]({name}.md)" for name, title in zip(papers, titles, strict=True)),
            "",
            "[What is not as the papers have it](../not_as_the_papers.md), and why.",
            "",
            "## Recorded runs",
            "",
            *(markdown(columns) if names else ["None yet."]),
            "",
            "## How to read them",
            "",
            "- A row is a system: a configuration with its options and a checkpoint.",
            "- `runs` says of how many runs a figure is the mean; ± is their standard deviation.",
            "- Runs of one seed on other machines, or with other numbers of threads, count apart here.",
            "  In comparisons over seeds they count as one.",
            "",
            "Each run is a file in `results/`, which has more: seed, every option, machine, threads, seconds,",
            "versions, revision and date. Beside it is what single sentences scored.",
            "Its seconds are of whatever else ran on the machine: [speed](../speed.md) compares on equal terms.",
            "",
            "To compare two systems over their seeds:",
            "",
            "```bash",
            "fairseq-plugins analysis seeds multi30k_de_en rnnsearch mc_rnn_3 --output work/seeds",
            "```",
            "",
            "## How to add a run",
            "",
            "```bash",
            "scripts/train.sh configs/multi30k_de_en/mc_rnn_3.yaml",
            "scripts/evaluate.sh configs/multi30k_de_en/mc_rnn_3.yaml --record",
            "scripts/update_docs.sh",
            "```",
            "",
            "The last command makes the pages of this folder from `results/` and `configs/tables/`.",
            "",
        ]
    )
