"""Models, kernels and optimizers on a GPU against the same on the CPU: losses and gradients in float32.

Skipped without a GPU. ``benchmarks/gpu.py`` runs this file on one. Its dry run compares the CPU with itself, as
``FAIRSEQ_PLUGINS_TEST_DEVICE=cpu`` does, which shows that the tests run.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_plugins.kernels.additive_attention import additive_attention
from fairseq_plugins.kernels.dropout import dropout
from fairseq_plugins.kernels.output_cross_entropy import output_cross_entropy
from fairseq_plugins.models.recurrent_language_model import RecurrentLanguageModel, RecurrentLanguageModelConfig
from fairseq_plugins.models.sequence_pair_classifier import SequencePairClassifier, SequencePairClassifierConfig
from fairseq_plugins.models.sequence_presets import SEQUENCE_PRESETS
from fairseq_plugins.models.sequence_ranker import SequenceRanker, SequenceRankerConfig
from fairseq_plugins.modules import RECURRENT_KINDS
from fairseq_plugins.optim.rmsprop import TensorFlowRMSprop
from tests.models.labelled import PAD, batch, labelled_task
from tests.models.tasks import WORDS, make_task
from tests.models.test_double_path import make_model as double_path
from tests.models.test_long_memory_network import COPYING, network
from tests.models.test_recurrent_seq2seq import make_model as recurrent_seq2seq
from tests.models.test_sequence_models import classifier
from tests.models.test_waveform_classifier import network as waveform_network

DEVICE = os.environ.get("FAIRSEQ_PLUGINS_TEST_DEVICE", "cuda")
KINDS = [kind for kind in sorted(RECURRENT_KINDS) if kind != "toy_recurrent"]
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
SMALL = {"embed_dim": 8, "hidden_size": 8, "dropout": 0.0}
TEXTS = batch([[4, 5, 6, 7, 8], [9, 10], [10, 4, 5]])
OTHERS = batch([[6, 4], [5, 9, 10, 8], [7]])

pytestmark = pytest.mark.skipif(
    DEVICE == "cuda" and not torch.cuda.is_available(), reason="there is no GPU (benchmarks/gpu.py runs this on one)"
)


@pytest.fixture(autouse=True)
def whole_float32() -> Iterator[None]:
    """Products without TF32, whose errors would hide what is looked for."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def moved(given: Any, device: str) -> Any:
    return given.to(device) if isinstance(given, Tensor) else given


def assert_agrees(model: nn.Module, run: Callable[[nn.Module, Callable[[Any], Any]], Tensor]) -> None:
    """Output and gradients of a model, in training without dropout, on both devices.

    Args:
        model: in float32 or float64, on the CPU
        run: of a model, and of what moves an input to its device
    """
    found = []
    for device in "cpu", DEVICE:
        own = copy.deepcopy(model).float().to(device).train()
        output = run(own, lambda given, device=device: moved(given, device))
        torch.manual_seed(1)
        weights = torch.randn(output.shape)
        parameters = {name: each for name, each in own.named_parameters() if each.requires_grad}
        loss = (output.float() * weights.to(device)).sum()
        gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        pairs = zip(parameters, gradients, strict=True)
        found.append((output.cpu(), {name: gradient.cpu() for name, gradient in pairs if gradient is not None}))
    (expected, expected_gradients), (actual, gradients) = found
    assert expected_gradients and expected_gradients.keys() == gradients.keys()
    torch.testing.assert_close(actual, expected, **TOLERANCE)
    for name, gradient in expected_gradients.items():
        # A sum of large numbers that nearly cancel has their rounding errors.
        scale = max(1.0, gradient.abs().max().item())
        torch.testing.assert_close(
            gradients[name],
            gradient,
            rtol=TOLERANCE["rtol"],
            atol=TOLERANCE["atol"] * scale,
            msg=lambda m, name=name: f"{name}: {m}",
        )


def translated(model: nn.Module, to: Callable[[Any], Any]) -> Tensor:
    (source, lengths), (target, _) = TEXTS, OTHERS
    # What a model says after the end of a sentence is nobody's, and another thing where CPUs leave padding out.
    return model(to(source), to(lengths), to(target))[0][to(target.ne(PAD))]


@pytest.mark.parametrize("kind", KINDS)
def test_recurrent_translation(kind: str) -> None:
    options = {"encoder_recurrent_layer": kind, "decoder_recurrent_layer": kind, "encoder_layers": 2}
    assert_agrees(recurrent_seq2seq(dropout=0.0, **options), translated)


@pytest.mark.parametrize("paths", ["cnn", "san", "cnn,san", "rnn", "cnn,san,rnn"])
def test_double_path_translation(paths: str) -> None:
    assert_agrees(
        double_path(dropout=0.0, activation_dropout=0.0, encoder_paths=paths, decoder_paths=paths), translated
    )


@pytest.mark.parametrize("kind", KINDS)
def test_language_model_over_two_windows(kind: str) -> None:
    torch.manual_seed(0)
    sizes = {"decoder_embed_dim": 8, "decoder_hidden_size": 8, "decoder_layers": 2}
    cfg = RecurrentLanguageModelConfig(**sizes, recurrent_layer=kind)
    model = RecurrentLanguageModel.build_model(cfg, make_task())
    text = torch.randint(2, WORDS, (3, 12))

    def run(model: nn.Module, to: Callable[[Any], Any]) -> Tensor:
        return torch.cat([model(to(window))[0] for window in text.split(6, dim=1)], dim=1)

    assert_agrees(model, run)


@pytest.mark.parametrize("kind", KINDS)
def test_classifier(kind: str) -> None:
    model = classifier(**SMALL, recurrent_layer=kind, layers=2, character_hidden_size=3, character_embed_dim=2)
    assert_agrees(model, lambda model, to: model(*map(to, TEXTS)))


def test_pairs_and_rankings() -> None:
    torch.manual_seed(0)
    pairs = SequencePairClassifierConfig(**SMALL, recurrent_layer="rcrn", projection_size=6)
    model = SequencePairClassifier.build_model(pairs, labelled_task(2))
    assert_agrees(model, lambda model, to: model(*map(to, TEXTS), *map(to, OTHERS)))
    owners = torch.tensor([0, 2, 2])
    for attentive in False, True:
        ranking = SequenceRankerConfig(**SMALL, recurrent_layer="rcrn", attentive_pooling=attentive)
        model = SequenceRanker.build_model(ranking, labelled_task(2, has_candidates=True))
        assert_agrees(model, lambda model, to: model(*map(to, TEXTS), *map(to, OTHERS), to(owners)))


@pytest.mark.parametrize("arch", [name for name in SEQUENCE_PRESETS if name.endswith("_pixels")])
def test_long_memory(arch: str) -> None:
    steps = torch.randint(0, 10, (3, 30))
    assert_agrees(network(arch, COPYING, hidden_size=8), lambda model, to: model(to(steps)))


@pytest.mark.parametrize("arch", [name for name in SEQUENCE_PRESETS if name.endswith("_audio")])
def test_waveforms(arch: str) -> None:
    task = SimpleNamespace(sampling_rate=4_000, window=400, classes=3)
    samples = torch.randn(3, 400)
    assert_agrees(waveform_network(arch, task, hidden_size=8), lambda model, to: model(to(samples)))


def test_output_layer_with_its_loss() -> None:
    torch.manual_seed(0)
    given = [torch.randn(*shape) for shape in ((300, 16), (500, 16), (500,))]
    target = torch.randint(0, 500, (300,))
    found = []
    for device in "cpu", DEVICE:
        inputs = [each.to(device, copy=True).requires_grad_() for each in given]
        loss, nll = output_cross_entropy(*inputs, target.to(device), 1, 0.1)
        found.append([each.cpu() for each in (loss.detach(), nll, *torch.autograd.grad(loss, inputs))])
    torch.testing.assert_close(*found, **TOLERANCE)


def test_additive_attention() -> None:
    torch.manual_seed(0)
    given = [torch.randn(*shape) for shape in ((3, 4, 8), (3, 7, 8), (3, 7, 5), (8,))]
    mask = torch.zeros(3, 7, dtype=torch.bool)
    mask[1, 4:] = True
    found = []
    for device in "cpu", DEVICE:
        inputs = [each.to(device, copy=True).requires_grad_() for each in given]
        outputs = additive_attention(*inputs, mask.to(device))
        gradients = torch.autograd.grad([each.sum() for each in outputs], inputs)
        found.append([each.detach().cpu() for each in (*outputs, *gradients)])
    torch.testing.assert_close(*found, **TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dropout(dtype: torch.dtype) -> None:
    x = torch.ones(1 << 16, dtype=dtype, device=DEVICE, requires_grad=True)
    y = dropout(x, 0.25)
    assert y.dtype == dtype and abs((y != 0).double().mean().item() - 0.75) < 0.02
    (gradient,) = torch.autograd.grad(y.sum(), [x])
    assert torch.equal(gradient, y.detach())


def test_rmsprop() -> None:
    found = []
    for device in "cpu", DEVICE:
        parameter = nn.Parameter(torch.arange(5.0, device=device))
        optimizer = TensorFlowRMSprop([parameter], lr=0.01, momentum=0.9)
        for step in range(3):
            parameter.grad = torch.linspace(-1, 1, 5, device=device) * (step + 1)
            optimizer.step()
        found.append(parameter.detach().cpu())
    torch.testing.assert_close(*found, **TOLERANCE)
