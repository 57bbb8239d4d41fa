"""``--criterion answer_span``: how probable the first and the last word of an answer are (R-NET, Section 3.4).

A model returns natural logarithms of both, each (B, T). The loss is logged in bits, as fairseq's own are. In validation
it is also logged how many places are right (``exact``), and their F1 by words of the passage (``f1``), in percent.
Questions whose answers have no place count in neither.
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

from ..modules import Pointed, best_spans


@register_criterion("answer_span", dataclass=FairseqDataclass)
class AnswerSpanCriterion(FairseqCriterion):
    """See the head of this file."""

    def forward(
        self, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The summed loss of a batch, the number that gradients are divided by, and what is logged."""
        return self.of_places(model(**sample["net_input"]), sample)

    def of_places(self, pointed: Pointed, sample: dict[str, Any]) -> tuple[Tensor, int, dict[str, Any]]:
        """The same of what a model says of the places."""
        target, count = sample["target"], sample["found"]
        start, end = (
            F.nll_loss(part.float(), target[:, side], ignore_index=-1, reduction="sum")
            for side, part in enumerate(pointed)
        )
        loss = start + end
        logged = {"ntokens": sample["ntokens"], "nsentences": sample["nsentences"], "sample_size": count}
        logged |= {"loss": loss.data, "questions": 0}
        if not self.training:
            spans, _ = best_spans(pointed, self.task.cfg.max_answer)
            is_there = target[:, 0] >= 0
            logged |= {
                "questions": count,
                "exact": ((spans == target).all(dim=1) & is_there).sum(),
                "f1": (overlap(spans, target) * is_there).sum(),
            }
        return loss, max(1, count), logged

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        total = {
            name: float(sum(log.get(name, 0) for log in logging_outputs))
            for name in ("loss", "sample_size", "questions", "exact", "f1")
        }
        count = max(1.0, total["sample_size"])
        metrics.log_scalar("loss", total["loss"] / count / math.log(2), count, round=3)
        if total["questions"]:
            for name in ("exact", "f1"):
                metrics.log_scalar(name, 100 * total[name] / total["questions"], total["questions"], round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def overlap(spans: Tensor, targets: Tensor) -> Tensor:
    """F1 of the words of two places, each (B, 2) of first and last word -> (B,)."""
    first, last = (of_both.unbind(dim=1) for of_both in (spans, targets))
    common = (first[1].minimum(last[1]) - first[0].maximum(last[0]) + 1).clamp(min=0)
    return 2 * common / ((first[1] - first[0] + 1) + (last[1] - last[0] + 1))
