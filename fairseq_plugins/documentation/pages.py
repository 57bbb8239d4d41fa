"""What is generated, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..experiments.records import Record
from ..tables.writing import markdown
from . import results_page
from .blocks import filled

WITH_PARTS = ("README.md",)
"""Pages with generated parts."""


def generated(checkout: Path, records: Sequence[Record]) -> dict[Path, str]:
    """Every page that is generated or has a generated part, with the text that it should have.

    Args:
        checkout: whose pages they are
        records: of its runs
    """
    pages = {checkout / "docs" / "results.md": results_page.page(records).rstrip() + "\n"}
    makers = parts(records)
    for name in WITH_PARTS:
        path = checkout / name
        pages[path] = filled(path.read_text(encoding="utf-8"), makers, name)
    return pages


def parts(records: Sequence[Record]) -> Mapping[str, Callable[[], str]]:
    """Name → what makes this part of a page."""
    return {"quickstart-results": lambda: quickstart_results(records)}


def quickstart_results(records: Sequence[Record]) -> str:
    """The scores of the quick start's systems."""
    own = [record for record in records if record.dataset == "quickstart"]
    if not own:
        return f"The quick start's scores: {results_page.NOT_RECORDED}."
    rows = results_page.recorded_rows([record for record in own if "test" in record.scores], "test")
    return "\n".join(markdown(rows))
