"""``--criterion output_cross_entropy``: the losses of fairseq's ``cross_entropy`` and ``label_smoothed_cross_entropy``,
computed together with the output layer, so that no table of tokens by vocabulary is ever made whole.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field
from typing import Any

from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor

from ..errors import InputError
from ..kernels.output_cross_entropy import output_cross_entropy


@dataclass
class OutputCrossEntropyConfig(FairseqDataclass):
    """The options of ``output_cross_entropy``, as fairseq's ``label_smoothed_cross_entropy`` has them."""

    label_smoothing: float = field(
        default=0.0, metadata={"help": "share of the target distribution that the wrong types have; 0 for none"}
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("output_cross_entropy", dataclass=OutputCrossEntropyConfig)
class OutputCrossEntropyCriterion(FairseqCriterion):
    """The (label-smoothed) cross-entropy, in chunks for models whose decoder says what its output layer is made of.

    That is ``decoder.output_parameters()``: the weight (V, E) and the bias (V,) or None by which the features of
    ``features_only=True`` become logits. For all other models, and with --find-unused-parameters, it is fairseq's own.

    Raises:
        InputError: a label smoothing outside 0 ... 1.
    """

    def __init__(self, task: FairseqTask, sentence_avg: bool, label_smoothing: float) -> None:
        super().__init__(task)
        if not 0 <= label_smoothing < 1:
            raise InputError(f"--label-smoothing must be at least 0 and below 1, not {label_smoothing}")
        self.sentence_avg = sentence_avg
        self.label_smoothing = label_smoothing
        self.in_tables = LabelSmoothedCrossEntropyCriterion(task, sentence_avg, label_smoothing)

    def forward(
        self, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The summed loss of a batch (without ``reduce`` each token's), the number that gradients are divided by, and
        what is logged."""
        self.check_smoothing(model)
        if not reduce or not says_its_output_layer(model) or finds_unused_parameters(model):
            return self.in_tables(model, sample, reduce)
        return self.in_chunks(model, sample)[:3]

    def check_smoothing(self, model: BaseFairseqModel) -> None:
        """Raises InputError if types that no text has would get a share of the target distribution."""
        if self.label_smoothing and hasattr(getattr(model, "decoder", None), "impossible"):
            raise InputError("--label-smoothing: recurrent_lm gives <s> and <pad> no probability at all; leave it out")

    def in_chunks(
        self, model: BaseFairseqModel, sample: dict[str, Any]
    ) -> tuple[Tensor, int, dict[str, Any], dict[str, Any]]:
        """What :meth:`forward` returns, and what the model gave beside its features."""
        features, extra = model(**sample["net_input"], features_only=True)
        loss, nll_loss = self.of_features(model, features, sample["target"])
        return loss, *self.logged(sample, loss, nll_loss), extra

    def of_features(self, model: BaseFairseqModel, features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The summed losses, with smoothing and without, of features (B, T, E) against target (B, T)."""
        weight, bias = model.decoder.output_parameters()
        return output_cross_entropy(
            features.flatten(0, 1), weight, bias, target.flatten(), self.padding_idx, self.label_smoothing
        )

    def logged(self, sample: dict[str, Any], loss: Tensor, nll_loss: Tensor) -> tuple[int, dict[str, Any]]:
        """The number that gradients are divided by, and what is logged of a batch with these losses."""
        sample_size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
        logged = {
            "loss": loss.data,
            "nll_loss": nll_loss.data,
            "ntokens": sample["ntokens"],
            "nsentences": sample["target"].size(0),
            "sample_size": sample_size,
        }
        return sample_size, logged

    reduce_metrics = LabelSmoothedCrossEntropyCriterion.reduce_metrics

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def finds_unused_parameters(model: BaseFairseqModel) -> bool:
    """Whether ``--find-unused-parameters`` has DistributedDataParallel look for them at the end of its forward: the
    output layer's, which are used after it, it would take for unused."""
    return getattr(model, "find_unused_parameters", False)


def says_its_output_layer(model: BaseFairseqModel) -> bool:
    """Whether a model's decoder has ``output_parameters``."""
    return hasattr(getattr(model, "decoder", None), "output_parameters")
