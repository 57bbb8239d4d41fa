"""R-Drop against its equation written out, for our models and for fairseq's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_plugins.criterions import r_drop
from fairseq_plugins.criterions.r_drop import RDropCriterion
from fairseq_plugins.errors import InputError
from tests.criterions.test_output_cross_entropy import gradients, sample
from tests.models.tasks import build_architecture, make_task

PAD = 1
# Ours, whose output layer is computed in chunks, and three of fairseq's.
ARCHITECTURES = ["dpn_iwslt_de_en", "rnnsearch_iwslt_de_en", "cnn_deeper_iwslt_de_en", "san_deeper_iwslt_de_en", "lstm"]


def model_of(arch: str) -> tuple[Any, BaseFairseqModel]:
    torch.manual_seed(0)
    task = make_task()
    task.target_dictionary = task.source_dictionary
    return task, build_architecture(arch, task).double().train()


def written_out(model: BaseFairseqModel, smoothing: float, weight: float) -> tuple[Tensor, Tensor]:
    """Half of Eq. 4, and the mean cross-entropy, of whole tables."""
    batch = sample()
    inputs = {name: value.repeat_interleave(2, dim=0) for name, value in batch["net_input"].items()}
    logits = model(**inputs)[0]
    first, second = (F.log_softmax(each, dim=-1) for each in (logits[::2], logits[1::2]))
    real = batch["target"] != PAD
    types = logits.size(-1)
    loss = logits.new_zeros(())
    for log_probabilities in first, second:
        of_target = -log_probabilities.gather(2, batch["target"].unsqueeze(2)).squeeze(2)
        wrong = -log_probabilities.sum(dim=2) - of_target
        loss = loss + ((1 - smoothing) * of_target + smoothing / (types - 1) * wrong)[real].sum()
    there = F.kl_div(second, first, log_target=True, reduction="none").sum(dim=2)[real].sum()
    back = F.kl_div(first, second, log_target=True, reduction="none").sum(dim=2)[real].sum()
    return loss / 2 + weight / 2 * (there + back) / 2, loss / 2


@pytest.mark.system
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_loss_and_gradients_are_those_of_the_equation(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(r_drop, "_CHUNK_NUMBERS", 3 * 11)  # chunks of three tokens
    task, model = model_of(arch)
    torch.manual_seed(1)
    expected, cross_entropy = written_out(model, 0.1, 3.0)
    expected_gradients = gradients(model, expected)
    torch.manual_seed(1)
    loss, size, log = RDropCriterion(task, False, 0.1, 3.0)(model, sample())
    assert float(expected) > float(cross_entropy) + 0.01, "the passes should differ"
    # fairseq takes its softmax in float32 whatever the model's precision is.
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6, check_dtype=False)
    torch.testing.assert_close(gradients(model, loss), expected_gradients, rtol=1e-4, atol=1e-5)
    assert size == log["ntokens"] == 8
    assert float(log["loss"]) == pytest.approx(float(cross_entropy), rel=1e-6), "the cross-entropy alone is logged"


@pytest.mark.parametrize("arch", ["rnnsearch_iwslt_de_en", "cnn_deeper_iwslt_de_en"])
def test_validation_reads_a_batch_once(arch: str) -> None:
    task, model = model_of(arch)
    model.eval()
    loss, size, log = RDropCriterion(task, False, 0.1, 3.0)(model, sample())
    expected, expected_size, expected_log = LabelSmoothedCrossEntropyCriterion(task, False, 0.1)(model, sample())
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6, check_dtype=False)
    assert size == expected_size and log.keys() == expected_log.keys()


def test_a_weight_below_zero() -> None:
    with pytest.raises(InputError, match="--r-drop-weight must be at least 0, not -1"):
        RDropCriterion(make_task(), False, 0.1, -1.0)
