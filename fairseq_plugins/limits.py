"""The limits at which a training ends, by what its checkpoint says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EARLY_STOPPING = "early_stopping"
"""Where a checkpoint's ``extra_state`` keeps the best validation (``best``) and how many there were since
(``num_runs``); :mod:`.patches.resuming` puts it there."""


def reached_limit(
    updates: int, extra_state: Mapping[str, Any], max_update: int, patience: int, stop_time_hours: float
) -> str | None:
    """In words, which limit a training has come to; None where it may go on.

    Args:
        updates: that were done
        extra_state: of the checkpoint that was saved after them
        max_update: as in fairseq's option; 0 and less are no limit, here and below
        patience: the same
        stop_time_hours: the same
    """
    if 0 < max_update <= updates:
        return f"{updates:,} updates were done before, the limit of --max-update {max_update}"
    worse = extra_state.get(EARLY_STOPPING, {}).get("num_runs", 0)
    if 0 < patience <= worse:
        return f"validations in a row that were no better: {worse}, the limit of --patience {patience}"
    # Several processes keep their times as tensors.
    hours = float(extra_state.get("previous_training_time", 0)) / 3600
    if 0 < stop_time_hours < hours:
        return f"{hours:.2f} hours were trained before, the limit of --stop-time-hours {stop_time_hours:g}"
    return None
