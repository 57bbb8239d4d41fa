"""What fairseq does slowly: PyTorch's compiler, the smallest numbers on CPUs, and Adam."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import omegaconf
import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.optim.adam import Adam
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from .replacing import replace_once

# Of optimizers: those that import PyTorch's compiler when they are called.
_METHODS = ("add_param_group", "state_dict", "load_state_dict", "zero_grad")


def defer_compiler() -> None:
    """Has PyTorch make an optimizer without importing its compiler, which takes more than a second.

    Nothing can be compiled before something else imports the compiler. Until then optimizers do without. The step of
    PyTorch's own optimizers imports it still (``--optimizer sgd``, ``asgd``); fairseq's Adam and NAG have their own.

    For PyTorch 2.5 or later.
    """
    for name in _METHODS:
        if getattr(Optimizer, name).__globals__["__name__"] == "torch._compile":
            replace_once(Optimizer, name, _without_compiler)


def _without_compiler(method: Callable) -> Callable:
    plain = vars(method)["__wrapped__"]

    def call(*args: Any, **kwargs: Any) -> Any:
        return (method if "torch._dynamo" in sys.modules else plain)(*args, **kwargs)

    return call


def flush_denormals() -> None:
    """Has fairseq's commands take numbers below the least normal one for zero on CPUs, as GPUs do.

    A closed gate is such a number, sigmoid(-88) = 6e-39, and so is what it lets through. A CPU multiplies a matrix of
    them some hundred times slower than another. A command begins so, before torch starts the threads that take it over.

    For fairseq 0.12.
    """
    replace_once(distributed_utils, "call_main", _flushing)


def _flushing(call_main: Callable) -> Callable:
    def call(cfg: omegaconf.DictConfig, main: Callable, **kwargs: Any) -> Any:
        torch.set_flush_denormal(True)
        return call_main(cfg, main, **kwargs)

    return call


def fuse_adam() -> None:
    """Has ``--optimizer adam`` pass over memory once on CPUs, by PyTorch's fused kernel; fairseq passes seven times.

    That is for dense parameters in single or double precision. The numbers are fairseq's but for rounding, and so is
    the optimizer's state in checkpoints.

    For fairseq 0.12.
    """
    replace_once(Adam, "step", _fused)


def _fused(step: Callable) -> Callable:
    def fused_step(self: Adam, closure: Callable[[], Any] | None = None) -> Any:
        if closure is not None or not all(map(_is_plain, self.param_groups)):
            return step(self, closure)
        for group in self.param_groups:
            by_step = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    by_step[_state(self, p)["step"]].append(p)
            for steps, parameters in by_step.items():
                _update(group, parameters, [self.state[p] for p in parameters], steps)
        return None

    return fused_step


def _is_plain(group: Mapping[str, Any]) -> bool:
    parameters = [p for p in group["params"] if p.grad is not None]
    return not group.get("amsgrad") and all(
        p.device.type == "cpu"
        and p.dtype in (torch.float32, torch.float64)
        and (p.grad.dtype, p.grad.layout) == (p.dtype, torch.strided)
        and p.is_contiguous()
        and p.grad.is_contiguous()
        for p in parameters
    )


def _state(optimizer: Adam, p: torch.nn.Parameter) -> dict[str, Any]:
    state = optimizer.state[p]
    if not state:
        state |= {"step": 0, "exp_avg": torch.zeros_like(p.data), "exp_avg_sq": torch.zeros_like(p.data)}
    for name in ("exp_avg", "exp_avg_sq"):
        state[name] = state[name].to(p.data)
    return state


@torch.no_grad()
def _update(
    group: Mapping[str, Any], parameters: Sequence[torch.nn.Parameter], states: Sequence[dict[str, Any]], steps: int
) -> None:
    """The next update of parameters that have had so many."""
    beta1, beta2 = group["betas"]
    adamw(
        list(parameters),
        [p.grad for p in parameters if p.grad is not None],
        [state["exp_avg"] for state in states],
        [state["exp_avg_sq"] for state in states],
        [],
        [torch.tensor(float(steps)) for _ in parameters],
        fused=True,
        amsgrad=False,
        beta1=beta1,
        beta2=beta2,
        lr=group["lr"],
        weight_decay=group["weight_decay"],
        # fairseq adds it to the root of the running mean, PyTorch to that root without its bias.
        eps=group["eps"] / math.sqrt(1 - beta2 ** (steps + 1)),
        maximize=False,
    )
    for state in states:
        state["step"] += 1
