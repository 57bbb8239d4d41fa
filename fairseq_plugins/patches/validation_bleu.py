"""``--eval-bleu`` where translations are empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from fairseq.criterions import FairseqCriterion
from fairseq.logging import metrics
from fairseq.tasks.translation import EVAL_BLEU_ORDER, TranslationTask

from .replacing import replace_once


def repair_validation_bleu() -> None:
    """Has BLEU of the development set count batches whose translations are all empty.

    fairseq leaves them out. The lengths of their references are then missing, so that BLEU is too high; where all
    batches are so, there is no BLEU, and ``--best-checkpoint-metric bleu`` ends the training with a KeyError.

    For fairseq 0.12.
    """

    def build(reduce_metrics: Callable) -> Callable:
        def reduce_with_empty(
            self: TranslationTask, logging_outputs: Sequence[Mapping[str, Any]], criterion: FairseqCriterion
        ) -> None:
            reduce_metrics(self, logging_outputs, criterion)
            scored = [output for output in logging_outputs if "_bleu_ref_len" in output]
            if not scored or any(output["_bleu_totals_0"] for output in scored):
                return
            for name in "_bleu_counts", "_bleu_totals":
                metrics.log_scalar(name, np.zeros(EVAL_BLEU_ORDER))
            metrics.log_scalar("_bleu_sys_len", 0)
            metrics.log_scalar("_bleu_ref_len", float(sum(output["_bleu_ref_len"] for output in scored)))
            metrics.log_derived("bleu", _bleu)

        return reduce_with_empty

    replace_once(TranslationTask, "reduce_metrics", build)


def _bleu(meters: Mapping[str, Any]) -> float:
    """As fairseq computes it of the sums over batches."""
    from sacrebleu.metrics import BLEU

    bleu = BLEU.compute_bleu(
        correct=meters["_bleu_counts"].sum,
        total=meters["_bleu_totals"].sum,
        sys_len=int(meters["_bleu_sys_len"].sum),
        ref_len=int(meters["_bleu_ref_len"].sum),
        smooth_method="exp",
    )
    return round(bleu.score, 2)
