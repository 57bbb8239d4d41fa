"""Layers and kernels where PyTorch traces or transforms them: torch.export, torch.func, torch.vmap and fake tensors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from fairseq_plugins.kernels import BACKEND_VARIABLE, dispatch
from fairseq_plugins.kernels.dot_product_attention import dot_product_attention
from fairseq_plugins.kernels.dropout import dropout
from fairseq_plugins.modules import RECURRENT_KINDS, AdditiveAttention, ConventionalRNN, LayerSizes, MultiChannelRNN

STEPS, ROWS, SIZE = 5, 3, 4
KINDS = sorted(RECURRENT_KINDS)


@pytest.fixture(autouse=True)
def _nobody_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)


class Output(nn.Module):
    """The outputs of a layer alone."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, *lengths: Tensor) -> Tensor:
        return self.layer(x, *lengths).output


def layer_of(kind: str) -> Output:
    torch.manual_seed(1)
    found = RECURRENT_KINDS[kind]
    return Output(found.make(found.options(), LayerSizes(SIZE, (SIZE,) * (2 if found.handles_depth else 1))))


@pytest.mark.system
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_training", [True, False])
def test_an_exported_layer_computes_what_it_did(kind: str, is_training: bool) -> None:
    layer = layer_of(kind).train(is_training)
    x, lengths, other = torch.randn(STEPS, ROWS, SIZE), torch.tensor([5, 2, 4]), torch.tensor([1, 5, 3])
    with torch.no_grad():
        whole = torch.export.export(layer, (x,), strict=False).module()
        torch.testing.assert_close(whole(x), layer(x))
        ragged = torch.export.export(layer, (x, lengths), strict=False).module()
        torch.testing.assert_close(ragged(x, other), layer(x, other))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_torch_func_are_those_of_autograd(kind: str) -> None:
    layer = layer_of(kind).double()
    x, lengths = torch.randn(STEPS, ROWS, SIZE, dtype=torch.float64), torch.tensor([5, 2, 4])
    parameters = dict(layer.named_parameters())

    def loss(parameters: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(layer, parameters, (x, lengths)).pow(2).sum()

    gradients = torch.func.grad(loss)(parameters)
    expected = torch.autograd.grad(loss(parameters), list(parameters.values()))
    torch.testing.assert_close(list(gradients.values()), list(expected))


def test_a_compiled_layer_runs_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x, calls = MultiChannelRNN(SIZE, SIZE), torch.randn(STEPS, ROWS, SIZE), []
    backend = dispatch.choose("multi_channel", layer._layer(), STEPS * ROWS).module
    run = backend.multi_channel_rnn
    monkeypatch.setattr(backend, "multi_channel_rnn", lambda *arguments: calls.append(1) or run(*arguments))
    compiled = torch.compile(layer, backend="eager")
    torch.testing.assert_close(compiled(x).output, layer(x).output)
    assert len(calls) == 2


@pytest.mark.parametrize("kind", ["mc_rnn", "ho_rnn"])
def test_vmap_is_a_loop(kind: str) -> None:
    """PyTorch's own layers have no rule for it."""
    layer, xs = layer_of(kind), torch.randn(2, STEPS, ROWS, SIZE)
    torch.testing.assert_close(torch.vmap(layer)(xs), torch.stack([layer(x) for x in xs]))


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_computed_without_numbers(kind: str) -> None:
    layer = layer_of(kind)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        assert layer(torch.randn(STEPS, ROWS, SIZE)).shape == (STEPS, ROWS, SIZE)


def attention(x: Tensor) -> Tensor:
    module, keys = AdditiveAttention(SIZE, SIZE, SIZE), x.transpose(0, 1)
    mask = torch.zeros(ROWS, STEPS, dtype=torch.bool)
    return module(keys[:, :1], module.project_keys(keys, mask), keys, mask)[0]


def heads(x: Tensor) -> Tensor:
    by_row = x.transpose(0, 1).unsqueeze(1)
    return dot_product_attention(by_row, by_row, by_row, None, 1.0)


@pytest.mark.parametrize("operation", [attention, heads, lambda x: dropout(x, 0.5, True)])
def test_operations_are_computed_without_numbers(operation: Callable[[Tensor], Tensor]) -> None:
    expected = operation(torch.randn(STEPS, ROWS, SIZE)).shape
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert operation(torch.randn(STEPS, ROWS, SIZE)).shape == expected


@pytest.mark.parametrize("layer", [MultiChannelRNN(SIZE, SIZE), ConventionalRNN(SIZE, SIZE, "gru")])
def test_memory_that_is_not_there_is_not_read(layer: nn.Module) -> None:
    """Outside of its mode a fake tensor says that it is on the CPU."""
    if dispatch.choose("multi_channel", MultiChannelRNN(SIZE, SIZE)._layer(), 4).name != "cpp":
        pytest.skip("no kernel is compiled here")
    x = FakeTensorMode(allow_non_fake_inputs=True).from_tensor(torch.randn(STEPS, ROWS, SIZE))
    with pytest.raises(ValueError, match="has no memory"):
        layer(x)
