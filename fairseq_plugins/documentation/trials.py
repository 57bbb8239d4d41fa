"""Parts of pages that show the trials of language models' settings: runs whose validation set is recorded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ..experiments.records import BEST, VALIDATION_SET, Record
from ..scoring.metrics import metric_named
from ..tables.writing import markdown
from .results_page import NOT_RECORDED, NOTHING

LEAST_GAIN = 1e-4
"""By how much of itself the best validation loss has to fall, or the rate is reduced: fairseq's ``--lr-threshold``."""


def table(records: Iterable[Record], dataset: str, options: Mapping[str, str], epochs: int) -> str:
    """Perplexity of the validation set: a row for each trial, which validated once an epoch, by network and settings.

    A trial is a network's settings. Of one that went on there is what it came to in the end; seeds are not told apart.

    Args:
        records: of all runs
        dataset: the folder below ``configs/``
        options: heading → the option of training that differs from trial to trial
        epochs: after how many of them it was decided which trial goes on
    """
    (column,) = metric_named("perplexity").columns
    longest: dict[tuple[str, ...], Record] = {}
    for record in records:
        scores = record.scores.get(VALIDATION_SET, {})
        if (record.dataset, record.checkpoint) != (dataset, BEST) or column.key not in scores:
            continue
        trial = record.system, *(record.options.get("train", {}).get(option, NOTHING) for option in options.values())
        if trial not in longest or len(record.validation_loss) > len(longest[trial].validation_loss):
            longest[trial] = record
    if not longest:
        return f"{NOT_RECORDED.capitalize()}."
    settings = sorted(longest, key=lambda trial: [_by_number(value) for value in trial])
    trials = [longest[trial] for trial in settings]
    early = [tuple(trial.validation_loss.values())[epochs - 1 : epochs] for trial in trials]
    rows = {
        "network": [f"`{trial.system}`" for trial in trials],
        **{heading: [trial[place] for trial in settings] for place, heading in enumerate(options, start=1)},
        # The training logs bits.
        f"after {epochs} epochs": [f"{2 ** bits[0]:{column.form}}" if bits else NOTHING for bits in early],
        "best": [f"{trial.scores[VALIDATION_SET][column.key]:{column.form}}" for trial in trials],
        "epochs": [str(len(trial.validation_loss)) for trial in trials],
        "rate first reduced after": [_reduced(trial, column.form) for trial in trials],
    }
    return "\n".join(markdown(rows))


def first_reduction(trial: Record) -> int | None:
    """After which epoch ``reduce_lr_on_plateau`` without patience first made the learning rate smaller."""
    options = trial.options.get("train", {})
    if (options.get("lr-scheduler"), options.get("lr-patience", "0")) != ("reduce_lr_on_plateau", "0"):
        return None
    best = math.inf
    for epoch, loss in enumerate(trial.validation_loss.values(), start=1):
        if loss >= best * (1 - float(options.get("lr-threshold", LEAST_GAIN))):
            return epoch
        best = loss
    return None


def _reduced(trial: Record, form: str) -> str:
    """The epoch, its perplexity and the next one's, which is the first with the smaller rate."""
    epoch = first_reduction(trial)
    if epoch is None:
        return NOTHING
    perplexities = [f"{2**bits:{form}}" for bits in trial.validation_loss.values()][epoch - 1 : epoch + 1]
    return f"epoch {epoch}: {', then '.join(perplexities)}"


def _by_number(value: str) -> tuple[float, str]:
    """Numbers by their size, before all else."""
    try:
        return float(value), ""
    except ValueError:
        return math.inf, value
