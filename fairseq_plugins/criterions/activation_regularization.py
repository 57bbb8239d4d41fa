"""``--criterion activation_regularized_cross_entropy``: cross-entropy with AR and TAR (Merity, McCann and Socher 2017,
"Revisiting Activation Regularization for Language RNNs"), for models that return their last layer's output.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field
from typing import Any

from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor

from ..errors import InputError
from .output_cross_entropy import OutputCrossEntropyCriterion, finds_unused_parameters, says_its_output_layer

MISSING = (
    "--criterion activation_regularized_cross_entropy needs recurrent_lm or an architecture of it: take cross_entropy"
)


@dataclass
class ActivationRegularizedCrossEntropyConfig(FairseqDataclass):
    """The options of ``activation_regularized_cross_entropy``."""

    activation_regularization: float = field(
        default=0.0,
        metadata={"help": "alpha: weight of the mean square of the last layer's output, after dropout (AR)"},
    )
    temporal_activation_regularization: float = field(
        default=0.0,
        metadata={"help": "beta: weight of the mean square of its change from step to step, before dropout (TAR)"},
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("activation_regularized_cross_entropy", dataclass=ActivationRegularizedCrossEntropyConfig)
class ActivationRegularizedCrossEntropyCriterion(OutputCrossEntropyCriterion):
    """In training, cross-entropy a token + alpha mean (m h_t)^2 + beta mean (h_t - h_(t-1))^2, m being dropout's mask.

    What is logged, and validated by, is the cross-entropy alone.

    Raises:
        InputError: a weight below 0, or (at the first batch) a model that does not return its last layer's output, or
            ``--find-unused-parameters``.
    """

    def __init__(
        self,
        task: FairseqTask,
        sentence_avg: bool,
        activation_regularization: float,
        temporal_activation_regularization: float,
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing=0.0)
        if min(activation_regularization, temporal_activation_regularization) < 0:
            raise InputError("--activation-regularization and --temporal-activation-regularization are at least 0")
        self.alpha, self.beta = activation_regularization, temporal_activation_regularization

    def forward(
        self, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The summed loss of a batch, the number that gradients are divided by, and what is logged."""
        if not says_its_output_layer(model):
            raise InputError(MISSING)
        if finds_unused_parameters(model):
            raise InputError("--find-unused-parameters does not go with this criterion: leave it out, all are used")
        loss, sample_size, logged, extra = self.in_chunks(model, sample)
        if model.training and (self.alpha or self.beta):
            # What is divided by the sample size later.
            loss = loss + sample_size * self._regularization(extra, sample)
        return loss, sample_size, logged

    def _regularization(self, extra: dict[str, Any], sample: dict[str, Any]) -> Tensor:
        if "undropped_output" not in extra:
            raise InputError(MISSING)
        # (T, B, H)
        dropped, undropped = extra["dropped_output"].float(), extra["undropped_output"].float()
        change = undropped[1:] - undropped[:-1]
        is_real = sample["target"].t().ne(self.padding_idx)
        regularization = self.alpha * _mean(dropped.square(), is_real)
        # A window of one step has no change.
        return regularization + self.beta * _mean(change.square(), is_real[1:])


def _mean(x: Tensor, is_real: Tensor) -> Tensor:
    """The mean of x (T, B, H) where is_real (T, B); 0 where it is so nowhere, as in a window of padding alone.

    Multiplied and not picked: how many are real is not known on a GPU before it is asked.
    """
    return (x * is_real.unsqueeze(-1)).sum() / (is_real.sum() * x.size(-1)).clamp(min=1)
