"""The criterion against fairseq's own two, over whole models."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.distributed import ModuleProxyWrapper
from fairseq.models import BaseFairseqModel
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from fairseq_plugins.criterions.output_cross_entropy import OutputCrossEntropyCriterion
from fairseq_plugins.errors import InputError
from tests.models.tasks import build_architecture, make_task, pad

ARCHITECTURES = ["rnnsearch_iwslt_de_en", "mc_rnn_iwslt_de_en", "dpn_iwslt_de_en", "dpn_nist_zh_en"]


def sample() -> dict:
    target = pad([[7, 8, 9, 10, 2], [5, 6, 2]], "right", 1, 5)
    previous = pad([[2, 7, 8, 9, 10], [2, 5, 6]], "right", 1, 5)
    source = pad([[5, 6, 7, 2], [4, 9, 2]], "left", 1, 4)
    inputs = {"src_tokens": source, "src_lengths": torch.tensor([4, 3]), "prev_output_tokens": previous}
    return {"net_input": inputs, "target": target, "ntokens": 8}


def gradients(model: BaseFairseqModel, loss: Tensor) -> list[Tensor]:
    model.zero_grad()
    loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


@cache
def model_of(arch: str) -> tuple[BaseFairseqModel, SimpleNamespace]:
    """A model in float64, and its task."""
    torch.manual_seed(0)
    task = make_task()
    task.target_dictionary = task.source_dictionary
    return build_architecture(arch, task).double().eval(), task


@pytest.mark.system
@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_loss_gradients_and_log_are_those_of_fairseq(arch: str, label_smoothing: float, sentence_avg: bool) -> None:
    model, task = model_of(arch)
    theirs = LabelSmoothedCrossEntropyCriterion(task, sentence_avg, label_smoothing)
    ours = OutputCrossEntropyCriterion(task, sentence_avg, label_smoothing)
    expected, expected_size, expected_log = theirs(model, sample())
    expected_gradients = gradients(model, expected)
    loss, size, log = ours(model, sample())
    # fairseq takes its softmax in float32 whatever the model's precision is.
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6, check_dtype=False)
    torch.testing.assert_close(gradients(model, loss), expected_gradients, rtol=1e-5, atol=1e-6)
    assert size == expected_size and log.keys() == expected_log.keys()
    for key, value in expected_log.items():
        assert float(log[key]) == pytest.approx(float(value), rel=1e-6)
    if label_smoothing == 0:
        plain, *_ = CrossEntropyCriterion(task, sentence_avg)(model, sample())
        torch.testing.assert_close(loss, plain, rtol=1e-6, atol=1e-6, check_dtype=False)


def test_an_architecture_of_fairseq_gets_its_own_loss() -> None:
    torch.manual_seed(0)
    task = make_task()
    model = build_architecture("cnn_deeper_iwslt_de_en", task).eval()
    assert not hasattr(model.decoder, "output_parameters")
    expected, *_ = LabelSmoothedCrossEntropyCriterion(task, False, 0.1)(model, sample())
    loss, *_ = OutputCrossEntropyCriterion(task, False, 0.1)(model, sample())
    assert torch.equal(loss, expected)


@pytest.fixture
def process_group() -> Iterator[None]:
    """Of this process alone."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.system
@pytest.mark.parametrize("arch", ["rnnsearch_iwslt_de_en", "dpn_nist_zh_en"])
def test_unused_parameters_may_be_looked_for(arch: str, process_group: None) -> None:
    """With ``--find-unused-parameters`` torch takes what is used after the model's forward for unused."""
    torch.manual_seed(0)
    task = make_task()
    task.target_dictionary = task.source_dictionary
    model = build_architecture(arch, task).eval()
    criterion = OutputCrossEntropyCriterion(task, False, 0.1)
    expected = criterion(model, sample())[0]
    expected_gradients = gradients(model, expected)
    parallel = DistributedDataParallel(model, find_unused_parameters=True)
    loss = criterion(ModuleProxyWrapper(parallel), sample())[0]
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients(model, loss), expected_gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0])
def test_an_impossible_label_smoothing_is_refused(label_smoothing: float) -> None:
    with pytest.raises(InputError, match="--label-smoothing"):
        OutputCrossEntropyCriterion(make_task(), False, label_smoothing)
