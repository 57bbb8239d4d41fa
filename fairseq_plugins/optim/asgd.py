"""``--optimizer asgd``: averaged stochastic gradient descent, ``torch.optim.ASGD`` with t0 = 0 and without decay.

The model that is validated and saved has the mean of the parameters since averaging began; training goes on from their
own values (``patches/averaged_weights.py``). With ``--lr-scheduler non_monotone`` averaging begins when that says so,
and until then this is ``torch.optim.SGD``: NT-ASGD of Merity, Keskar and Socher (2018, Algorithm 1).

``torch.optim.ASGD`` computes the step size of an update at the end of the one before, also where learning rates change
between the two, as in the authors' code.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, List  # noqa: UP035

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, FP16Optimizer, MemoryEfficientFP16Optimizer, register_optimizer
from omegaconf import II
from torch import nn

from ..errors import InputError

# fairseq reads no list[float].
Rates = List[float]  # noqa: UP006


@dataclass
class ASGDConfig(FairseqDataclass):
    """The options of ``asgd``."""

    weight_decay: float = field(default=0.0, metadata={"help": "weight decay (L2)"})
    lr: Rates = II("optimization.lr")


@register_optimizer("asgd", dataclass=ASGDConfig)
class AveragedSGD(FairseqOptimizer):
    """See the head of this file."""

    def __init__(self, cfg: ASGDConfig, params: Iterable[nn.Parameter]) -> None:
        super().__init__(cfg)
        self._parameters = list(params)
        self._holds_averages = False
        self._make(is_averaging=True)

    @property
    def optimizer_config(self) -> dict[str, Any]:
        return {"lr": self.cfg.lr[0], "weight_decay": self.cfg.weight_decay}

    @property
    def is_averaging(self) -> bool:
        """Whether averaging has begun."""
        return isinstance(self._optimizer, torch.optim.ASGD)

    def wait_to_average(self) -> None:
        """Averages nothing until :meth:`begin_averaging`."""
        self._make(is_averaging=False)

    def begin_averaging(self) -> None:
        """The mean is that of the parameters after the second update from now and all later ones; until then it is the
        parameters themselves. ``torch.optim.ASGD`` with t0 = 0 leaves out the first."""
        lr = self.get_lr()
        self._make(is_averaging=True)
        self.set_lr(lr)

    def hold_averages(self) -> None:
        """Gives the model the averages, as far as there are any, and keeps its own parameters in their place."""
        if not self._holds_averages:
            self._exchange()

    def hold_parameters(self) -> None:
        """Gives the model its own parameters back."""
        if self._holds_averages:
            self._exchange()

    def state_dict(self) -> dict[str, Any]:
        averaging = {"is_averaging": self.is_averaging, "holds_averages": self._holds_averages}
        return {**super().state_dict(), **averaging}

    def load_state_dict(self, state_dict: dict[str, Any], optimizer_overrides: dict[str, Any] | None = None) -> None:
        state = dict(state_dict)
        is_averaging, self._holds_averages = state.pop("is_averaging"), state.pop("holds_averages")
        if is_averaging != self.is_averaging:
            self._make(is_averaging)
        super().load_state_dict(state, optimizer_overrides)

    def _make(self, is_averaging: bool) -> None:
        optimizer: torch.optim.Optimizer
        if is_averaging:
            optimizer = torch.optim.ASGD(self._parameters, lambd=0, t0=0, **self.optimizer_config)
        else:
            optimizer = torch.optim.SGD(self._parameters, **self.optimizer_config)
        self._optimizer = optimizer

    @torch.no_grad()
    def _exchange(self) -> None:
        averages = [(parameter, self._optimizer.state.get(parameter, {}).get("ax")) for parameter in self._parameters]
        if all(average is None for _, average in averages):
            return
        for parameter, average in averages:
            if average is not None:
                current = parameter.clone()
                parameter.copy_(average)
                average.copy_(current)
        self._holds_averages = not self._holds_averages


def averaged_optimizer(optimizer: Any) -> AveragedSGD | None:
    """The optimizer itself, or what fairseq's ``--amp`` has wrapped; None where it is another.

    Raises:
        InputError: it is wrapped for half precision, where what is averaged is not what the model has.
    """
    inner = getattr(optimizer, "fp32_optimizer", optimizer)
    inner = getattr(inner, "wrapped_optimizer", inner)
    if not isinstance(inner, AveragedSGD):
        return None
    if isinstance(optimizer, (FP16Optimizer, MemoryEfficientFP16Optimizer)):
        raise InputError("--optimizer asgd does not go with --fp16 or --bf16: leave them out, or take --amp")
    return inner
