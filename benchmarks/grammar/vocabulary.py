"""The vocabulary of the built-in corpus: tables in ``words/``, tab-separated, with their columns' names on top."""

from __future__ import annotations

import csv
from pathlib import Path

WORDS = Path(__file__).with_name("words")


def rows(name: str) -> list[dict[str, str]]:
    """The lines of ``words/<name>.tsv`` in their order; column → what is there, which may be nothing."""
    with (WORDS / f"{name}.tsv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def rows_by_kind(name: str) -> dict[str, list[dict[str, str]]]:
    """The lines of ``words/<name>.tsv`` by what is in its column ``kind``, which the lines are left without."""
    tables: dict[str, list[dict[str, str]]] = {}
    for row in rows(name):
        tables.setdefault(row.pop("kind"), []).append(row)
    return tables
