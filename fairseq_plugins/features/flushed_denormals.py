"""Numbers below the least normal one count as zero in fairseq's own commands on CPUs, as they do on GPUs.

A closed gate is such a number, sigmoid(-88) = 6e-39, and so is what it lets through. A CPU multiplies a matrix of
them some hundred times slower than another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import omegaconf
import torch
from fairseq.distributed import utils as distributed_utils

from ..compat.replacing import replace_once


def flush_denormals() -> None:
    """Lets every command of fairseq's begin so, before torch starts the threads that take it over from this one."""
    replace_once(distributed_utils, "call_main", _flushing)


def _flushing(call_main: Callable) -> Callable:
    def call(cfg: omegaconf.DictConfig, main: Callable, **kwargs: Any) -> Any:
        torch.set_flush_denormal(True)
        return call_main(cfg, main, **kwargs)

    return call
