"""``--criterion sequence_classification``: the cross-entropy of classes, and how many are right.

A model returns logits (B, classes), or (B, P, classes) for P classes of each example; the target is (B,) or (B, P).
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import math
from typing import Any

import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from torch import Tensor


@register_criterion("sequence_classification", dataclass=FairseqDataclass)
class SequenceClassificationCriterion(FairseqCriterion):
    """See the head of this file. The loss is logged in bits, as fairseq's own are."""

    def forward(
        self, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The summed loss of a batch, the number that gradients are divided by, and what is logged."""
        return self.of_log_probabilities(self.log_probabilities(model, sample), sample)

    def log_probabilities(self, model: BaseFairseqModel, sample: dict[str, Any]) -> Tensor:
        """Natural logarithms, (B, classes) or (B, P, classes), float32."""
        return F.log_softmax(model(**sample["net_input"]).float(), dim=-1)

    def of_log_probabilities(self, log_probabilities: Tensor, sample: dict[str, Any]) -> tuple[Any, int, dict]:
        """What :meth:`forward` returns; nothing is counted where the classes are not known."""
        target = sample.get("target")
        logged = {"ntokens": sample["ntokens"], "nsentences": sample["nsentences"]}
        if target is None:
            return log_probabilities.sum() * 0, 1, logged | {"loss": 0.0, "sample_size": 1, "correct": 0, "classes": 1}
        target = target.view(log_probabilities.shape[:-1])
        loss = F.nll_loss(log_probabilities.flatten(0, -2), target.flatten(), reduction="sum")
        correct = (log_probabilities.argmax(dim=-1) == target).sum()
        count = target.numel()
        logged |= {"loss": loss.data, "sample_size": count, "correct": correct, "classes": count}
        return loss, count, logged

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        total = {
            name: float(sum(log.get(name, 0) for log in logging_outputs))
            for name in ("loss", "sample_size", "correct", "classes")
        }
        metrics.log_scalar("loss", total["loss"] / total["sample_size"] / math.log(2), total["sample_size"], round=3)
        metrics.log_scalar("accuracy", 100 * total["correct"] / total["classes"], total["classes"], round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True
