"""``--lr-scheduler non_monotone``: one learning rate, and averaging or an end when validation stops getting better.

That is when the validation loss of an epoch is above the lowest of all epochs but the last n before it (Merity, Keskar
and Socher 2018, Algorithm 1; ``--non-monotone-interval``). ``--when-non-monotone average`` then has
``--optimizer asgd`` begin to average (NT-ASGD); ``stop``, for AWD-LSTM's finetuning, makes the learning rate 0, at
which training ends. With ``--maximize-best-checkpoint-metric`` it is the metric, which is below the highest.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import logging
import math
from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.optim import FairseqOptimizer
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II

from ..errors import InputError
from .asgd import Rates, averaged_optimizer

logger = logging.getLogger(__name__)

ACTIONS = ChoiceEnum(["average", "stop"])


@dataclass
class NonMonotoneConfig(FairseqDataclass):
    """The options of ``non_monotone``."""

    non_monotone_interval: int = field(
        default=5, metadata={"help": "n: the epochs whose validation losses do not count yet"}
    )
    when_non_monotone: ACTIONS = field(  # type: ignore[valid-type]  # fairseq makes the class
        default="average",
        metadata={
            "help": "average: begin to average (--optimizer asgd); stop: end the training (with --stop-min-lr 0)"
        },
    )
    stop_min_lr: float = II("optimization.stop_min_lr")
    maximize_best_checkpoint_metric: bool = II("checkpoint.maximize_best_checkpoint_metric")
    lr: Rates = II("optimization.lr")


@register_lr_scheduler("non_monotone", dataclass=NonMonotoneConfig)
class NonMonotone(FairseqLRScheduler):
    """See the head of this file.

    Raises:
        InputError: there is nothing to average, the training would not end, or the interval is below 0.
    """

    def __init__(self, cfg: NonMonotoneConfig, optimizer: FairseqOptimizer) -> None:
        super().__init__(cfg, optimizer)
        if cfg.non_monotone_interval < 0:
            raise InputError(f"--non-monotone-interval must be 0 or more, not {cfg.non_monotone_interval}")
        self._losses: list[float] = []
        self._lr = cfg.lr[0]
        self._averages = str(cfg.when_non_monotone) == "average"
        if self._averages:
            averaged = averaged_optimizer(optimizer)
            if averaged is None:
                raise InputError("--lr-scheduler non_monotone needs --optimizer asgd, whose weights it averages")
            averaged.wait_to_average()
        elif cfg.stop_min_lr < 0:
            raise InputError("--when-non-monotone stop needs --stop-min-lr 0, or the training would not end")

    def state_dict(self) -> dict[str, Any]:
        return {"lr": self._lr, "losses": self._losses}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._lr, self._losses = state_dict["lr"], list(state_dict["losses"])

    def step(self, epoch: int, val_loss: float | None = None) -> float:
        """Takes the validation loss at an epoch's end."""
        if val_loss is not None:
            # Of accuracy or BLEU more is better.
            loss = -float(val_loss) if self.cfg.maximize_best_checkpoint_metric else float(val_loss)
            loss = math.inf if math.isnan(loss) else loss  # nothing compares with NaN
            earlier = self._losses[: -self.cfg.non_monotone_interval or None]
            if earlier and loss > min(earlier):
                self._act(epoch)
            self._losses.append(loss)
        return self.step_update(0)

    def step_update(self, num_updates: int) -> float:
        """The learning rate stays."""
        self.optimizer.set_lr(self._lr)
        return self._lr

    def _act(self, epoch: int) -> None:
        problem = "metric does not rise" if self.cfg.maximize_best_checkpoint_metric else "loss does not fall"
        if not self._averages:
            logger.info(f"epoch {epoch}: the validation {problem} any more: this is the end")
            self._lr = 0.0
            return
        optimizer = averaged_optimizer(self.optimizer)
        if optimizer is not None and not optimizer.is_averaging:
            logger.info(f"epoch {epoch}: the validation {problem} any more: averaging begins")
            optimizer.begin_averaging()
