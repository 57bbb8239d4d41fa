"""How many parameters a model has, as its checkpoints say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq.trainer import Trainer

from .replacing import replace_once


def keep_parameter_counts() -> None:
    """Has checkpoints keep ``parameters``: how many the model has, shared ones counted once.

    fairseq says it in its log alone. A checkpoint's tensors do not: a shared parameter is among them several times, and
    so are buffers.

    For fairseq 0.12.
    """
    replace_once(Trainer, "state_dict", _with_parameter_count)


def _with_parameter_count(state_dict: Callable) -> Callable:
    def state(self: Trainer) -> dict[str, Any]:
        parameters = self.get_model().parameters()
        return {**state_dict(self), "parameters": sum(parameter.numel() for parameter in parameters)}

    return state
