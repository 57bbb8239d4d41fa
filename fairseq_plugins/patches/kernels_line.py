"""A training says in its first lines on which kernels it runs."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

import omegaconf
import torch
from fairseq.distributed import utils as distributed_utils

from ..kernels import BACKEND_VARIABLE, comparison
from ..kernels.summary import summary, summary_on_gpus
from .replacing import replace_once

logger = logging.getLogger(__name__)


def say_kernels() -> None:
    """Has fairseq-train do so, before it reads anything. It knows nothing of them.

    For fairseq 0.12.
    """
    replace_once(distributed_utils, "call_main", _saying_kernels)


def _saying_kernels(call_main: Callable) -> Callable:
    def call(cfg: omegaconf.DictConfig, main: Callable, **kwargs: Any) -> Any:
        if main.__module__ == "fairseq_cli.train":
            # The processes that are started from here find them compiled.
            logger.info(_line(cfg.common))
        return call_main(cfg, main, **kwargs)

    return call


def _line(common: omegaconf.DictConfig) -> str:
    if torch.cuda.is_available() and not common.cpu:
        if not os.environ.get(BACKEND_VARIABLE):
            comparison.ensure()
        return summary_on_gpus()
    return summary(torch.float16 if common.fp16 else torch.bfloat16 if common.bf16 else torch.float32)
