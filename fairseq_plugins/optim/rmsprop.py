"""``--optimizer rmsprop``: RMSProp as TensorFlow 1 computes it, by which DilatedRNN's experiments were made.

    s ← decay · s + (1 − decay) · g²,  s = 1 at the start      v ← momentum · v + lr · g / √(s + ε)      w ← w − v

``torch.optim.RMSprop`` starts from s = 0 and adds ε outside the root. At decay 0.9 its first step is 3.2 times the
learning rate however small g is; here it is 1.05 times the learning rate times g, where g is small.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, overload

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II
from torch import Tensor

from ..errors import InputError


class TensorFlowRMSprop(torch.optim.Optimizer):
    """See the head of this file.

    Args:
        params: to train.
        lr: learning rate.
        decay: of the mean square.
        momentum: 0 for none.
        eps: ε.
        weight_decay: times the weights is added to the gradients.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        decay: float = 0.9,
        momentum: float = 0.0,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "decay": decay, "momentum": momentum, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One step; what ``closure`` returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        state = self.state[parameter]
        if not state:
            state["mean_square"] = torch.ones_like(parameter)
            if group["momentum"]:
                state["velocity"] = torch.zeros_like(parameter)
        mean_square = state["mean_square"]
        mean_square.mul_(group["decay"]).addcmul_(gradient, gradient, value=1 - group["decay"])
        step = gradient * (mean_square + group["eps"]).rsqrt_() * group["lr"]
        if group["momentum"]:
            step = state["velocity"].mul_(group["momentum"]).add_(step)
        parameter.sub_(step)


@dataclass
class RMSpropConfig(FairseqDataclass):
    """The options of ``rmsprop``; the defaults are those of DilatedRNN's experiments."""

    rmsprop_decay: float = field(default=0.9, metadata={"help": "decay of the mean square of the gradients"})
    rmsprop_momentum: float = field(default=0.0, metadata={"help": "momentum"})
    rmsprop_eps: float = field(default=1e-10, metadata={"help": "what is added to the mean square"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay"})
    lr: list[float] = II("optimization.lr")


@register_optimizer("rmsprop", dataclass=RMSpropConfig)
class FairseqRMSprop(FairseqOptimizer):
    """See the head of this file.

    Raises:
        InputError: decay or momentum is not in [0, 1), or ε below 0.
    """

    def __init__(self, cfg: RMSpropConfig, params: Iterable[Tensor]) -> None:
        super().__init__(cfg)
        for option, value in (("decay", cfg.rmsprop_decay), ("momentum", cfg.rmsprop_momentum)):
            if not 0 <= value < 1:
                raise InputError(f"--rmsprop-{option} must be at least 0 and below 1, not {value}")
        if not cfg.rmsprop_eps >= 0:
            raise InputError(f"--rmsprop-eps must be at least 0, not {cfg.rmsprop_eps}")
        self._optimizer = TensorFlowRMSprop(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict[str, Any]:
        return {
            "lr": self.cfg.lr[0],
            "decay": self.cfg.rmsprop_decay,
            "momentum": self.cfg.rmsprop_momentum,
            "eps": self.cfg.rmsprop_eps,
            "weight_decay": self.cfg.weight_decay,
        }

    @property
    def supports_flat_params(self) -> bool:
        return True
