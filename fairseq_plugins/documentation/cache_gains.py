"""Parts of pages that tell what the continuous cache takes off the recorded language models' perplexity."""

from __future__ import annotations

from collections.abc import Iterable

from ..experiments.record_groups import groups
from ..experiments.records import BEST, Record
from ..scoring.metrics import metric_named
from ..tables.writing import markdown
from .results_page import NOT_RECORDED, NOTHING, cell

SUBSET = "test"
CACHED = f"{SUBSET} with cache"
OPTIONS = {"cache": "true"}
"""In what a record with the cache differs from its configuration."""


def table(records: Iterable[Record], dataset: str) -> str:
    """A row for each network of a data set that was evaluated without and with the cache.

    Args:
        records: of all runs
        dataset: the folder below ``configs/``
    """
    (column,) = metric_named("perplexity").columns
    own = [record for record in records if record.dataset == dataset and not record.carried_over]
    found = [group for group in groups(own) if group.checkpoint == BEST]
    plain = {group.system: group for group in found if not group.differences and group.figure(column.key, SUBSET)}
    cached = [group for group in found if group.differences == OPTIONS and group.system in plain]
    if not cached:
        return f"{NOT_RECORDED.capitalize()}."
    figures = [group.figure(column.key, CACHED) for group in cached]
    rows = {
        "network": [f"`{group.system}`" for group in cached],
        column.label: [cell(plain[group.system], column, SUBSET) for group in cached],
        "with the cache": [cell(group, column, CACHED) for group in cached],
        "runs": [figure.runs if figure else NOTHING for figure in figures],
    }
    return "\n".join(markdown(rows))
