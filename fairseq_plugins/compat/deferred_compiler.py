"""PyTorch imports its compiler, more than a second long, when an optimizer is made: it must leave that alone.

Nothing can be compiled before something else imports the compiler. Until then optimizers do without. The step of
PyTorch's own optimizers imports it still (``--optimizer sgd``, ``asgd``); fairseq's Adam and NAG have their own steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer

from .replacing import replace_once

METHODS = ("add_param_group", "state_dict", "load_state_dict", "zero_grad")
"""Those of optimizers that import it when they are called."""


def defer_compiler() -> None:
    """Has them import it no more. Further calls change nothing."""
    for name in METHODS:
        if getattr(Optimizer, name).__globals__["__name__"] == "torch._compile":
            replace_once(Optimizer, name, _without_compiler)


def _without_compiler(method: Callable) -> Callable:
    plain = method.__wrapped__

    def call(*args: Any, **kwargs: Any) -> Any:
        return (method if "torch._dynamo" in sys.modules else plain)(*args, **kwargs)

    return call
