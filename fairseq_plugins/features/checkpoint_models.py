"""Models of checkpoints, which need none of the files that they were made from: their weights are in the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq import models
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask

from ..compat.replacing import replace_once


def tell_models_of_checkpoints() -> None:
    """Has a task say ``is_from_checkpoint`` while it builds a model, which fairseq tells the task alone."""

    def build(build_model: Callable) -> Callable:
        def telling(cfg: Any, task: FairseqTask, from_checkpoint: bool = False) -> BaseFairseqModel:
            task.is_from_checkpoint = from_checkpoint
            return build_model(cfg, task, from_checkpoint)

        return telling

    replace_once(models, "build_model", build)
