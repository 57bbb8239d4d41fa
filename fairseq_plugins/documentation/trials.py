"""Parts of pages that show the trials of language models' settings: runs whose validation set is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..experiments.records import BEST, Record
from ..scoring.metrics import metric_named
from ..tables.writing import markdown
from .results_page import NOT_RECORDED, NOTHING

SUBSET = "valid"


def table(records: Iterable[Record], dataset: str, options: Mapping[str, str], epochs: int) -> str:
    """Perplexity of the validation set: a row for each trial, which validated once an epoch.

    Args:
        records: of all runs
        dataset: the folder below ``configs/``
        options: heading → the option of training that differs from trial to trial
        epochs: after how many of them it was decided which trial goes on
    """
    (column,) = metric_named("perplexity").columns
    trials = [
        record
        for record in records
        if (record.dataset, record.checkpoint) == (dataset, BEST) and column.key in record.scores.get(SUBSET, {})
    ]
    if not trials:
        return f"{NOT_RECORDED.capitalize()}."
    early = [tuple(trial.validation_loss.values())[epochs - 1 : epochs] for trial in trials]
    rows = {
        "network": [f"`{trial.system}`" for trial in trials],
        **{
            heading: [trial.options.get("train", {}).get(option, NOTHING) for trial in trials]
            for heading, option in options.items()
        },
        # The training logs bits.
        f"after {epochs} epochs": [f"{2 ** bits[0]:{column.form}}" if bits else NOTHING for bits in early],
        "best": [f"{trial.scores[SUBSET][column.key]:{column.form}}" for trial in trials],
        "epochs": [str(len(trial.validation_loss)) for trial in trials],
    }
    return "\n".join(markdown(rows))
