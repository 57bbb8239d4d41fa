"""``--criterion ranking_hinge``: a right candidate's score above wrong ones' of its question by a margin.

RCRN (Tay, Luu and Hui 2018), Section 4.2, "Ranking Model": pairwise hinge loss with a margin of 0.1; of each right
candidate the mean over the wrong ones that it is compared with. In validation MAP and MRR are logged.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from torch import Tensor

from ..scoring.ranking import question_scores


@dataclass
class RankingHingeConfig(FairseqDataclass):
    """The options of ``ranking_hinge``."""

    margin: float = field(default=0.1, metadata={"help": "by how much a right candidate's score should be higher"})


@register_criterion("ranking_hinge", dataclass=RankingHingeConfig)
class RankingHingeCriterion(FairseqCriterion):
    """See the head of this file."""

    def __init__(self, task: FairseqTask, margin: float) -> None:
        super().__init__(task)
        self.margin = margin

    def forward(
        self, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The summed loss of a batch, the number that gradients are divided by, and what is logged."""
        return self.of_scores(model(**sample["net_input"]).float(), sample)

    def of_scores(self, scores: Tensor, sample: dict[str, Any]) -> tuple[Tensor, int, dict[str, Any]]:
        """The same of scores (N,)."""
        logged = {"ntokens": sample["ntokens"], "nsentences": sample["nsentences"], "questions": 0}
        if sample.get("target") is None:
            return scores.sum() * 0, 1, logged | {"loss": 0.0, "sample_size": 1}
        question, is_right = sample["net_input"]["question"], sample["target"] == 1
        loss = hinge(scores, is_right, question, self.margin)
        count = sample["rights"]
        logged |= {"loss": loss.data, "sample_size": count}
        if not self.training:
            of_questions = question_scores(scores.tolist(), is_right.tolist(), list(map(str, question.tolist())))
            sums = dict(zip(("map", "mrr", "questions"), of_questions.sum(axis=0).tolist(), strict=True))
            logged |= sums
        return loss, count, logged

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        total = {
            name: float(sum(log.get(name, 0) for log in logging_outputs))
            for name in ("loss", "sample_size", "map", "mrr", "questions")
        }
        metrics.log_scalar("loss", total["loss"] / total["sample_size"], total["sample_size"], round=4)
        if total["questions"]:
            for name in ("map", "mrr"):
                metrics.log_scalar(name, 100 * total[name] / total["questions"], total["questions"], round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def hinge(scores: Tensor, is_right: Tensor, question: Tensor, margin: float) -> Tensor:
    """Summed over right candidates: the mean over their question's wrong ones of max(0, margin - right + wrong).

    Args:
        scores: (N,)
        is_right: (N,)
        question: (N,) which question each candidate belongs to
        margin: of the hinge
    """
    compared = is_right.unsqueeze(1) & ~is_right & (question.unsqueeze(1) == question)
    losses = torch.relu(margin - scores.unsqueeze(1) + scores).masked_fill(~compared, 0)
    # A question without a wrong candidate has nothing to compare with.
    return (losses.sum(dim=1) / compared.sum(dim=1).clamp(min=1)).sum()
