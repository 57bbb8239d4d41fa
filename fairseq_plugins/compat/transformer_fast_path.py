"""The fused kernel that fairseq 0.12.2's transformer calls in generation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .replacing import replace_once


def avoid_transformer_fast_path(layer: type) -> None:
    """Keeps fairseq 0.12.2's transformer encoder off a fused kernel whose arguments changed in PyTorch 1.13.

    It fails in generation: "Mask Type should be defined". fairseq-fixed has no such path.
    """
    if "can_use_fastpath" not in layer.__init__.__code__.co_names:
        return

    def build(init: Callable) -> Callable:
        def initialise(self: torch.nn.Module, *args: Any, **keywords: Any) -> None:
            init(self, *args, **keywords)
            self.can_use_fastpath = False

        return initialise

    replace_once(layer, "__init__", build)
