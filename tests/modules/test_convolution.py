"""Gated convolutions: causality, carried context, padding, weight normalisation."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_plugins.modules.convolution import GatedConvolution, remove_weight_norm

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel_width", [1, 3, 5])
def test_equals_torch_convolution(causal: bool, kernel_width: int) -> None:
    layer = GatedConvolution(6, kernel_width, causal=causal).double()
    x = torch.randn(2, 7, 6, dtype=torch.float64)
    before = kernel_width - 1 if causal else kernel_width // 2
    weight = layer.linear.weight.view(12, kernel_width, 6).permute(0, 2, 1)
    padded = F.pad(x.transpose(1, 2), (before, kernel_width - 1 - before))
    expected = F.glu(F.conv1d(padded, weight, layer.linear.bias), dim=1).transpose(1, 2)
    torch.testing.assert_close(layer(x)[0], expected, **TOLERANCE)


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(1, 9), st.data())
def test_a_causal_convolution_may_be_split_anywhere(kernel_width: int, size: int, data: st.DataObject) -> None:
    layer = GatedConvolution(4, kernel_width, causal=True).double()
    x = torch.randn(3, size, 4, dtype=torch.float64)
    whole, context = layer(x)
    cut = data.draw(st.integers(0, size))
    first, carried = layer(x[:, :cut])
    second, carried = layer(x[:, cut:], context=carried)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole, **TOLERANCE)
    torch.testing.assert_close(carried, context, **TOLERANCE)
    assert carried.shape == (3, kernel_width - 1, 4)


@pytest.mark.parametrize("causal", [False, True])
def test_padding_counts_as_the_outside_of_the_sentence(causal: bool) -> None:
    layer = GatedConvolution(4, 3, causal=causal).double()
    sentence = torch.randn(1, 5, 4, dtype=torch.float64)
    noise = torch.randn(1, 2, 4, dtype=torch.float64)
    expected, _ = layer(sentence)
    for parts, kept in (([sentence, noise], slice(0, 5)), ([noise, sentence], slice(2, 7))):
        real = torch.zeros(1, 7, dtype=torch.bool)
        real[:, kept] = True
        output, _ = layer(torch.cat(parts, dim=1), real)
        torch.testing.assert_close(output[:, kept], expected, **TOLERANCE)


def test_weight_normalisation_goes_without_a_trace() -> None:
    layer = GatedConvolution(4, 3).double()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    names = {name for name, _ in layer.named_parameters()}
    expected, _ = layer(x)
    remove_weight_norm(layer)
    assert names != {name for name, _ in layer.named_parameters()} == {"linear.weight", "linear.bias"}
    torch.testing.assert_close(layer(x)[0], expected, **TOLERANCE)


def test_starts_as_convs2s_does() -> None:
    layer = GatedConvolution(256, 3, dropout=0.1)
    weight = layer.linear.weight
    assert weight.std().item() == pytest.approx(math.sqrt(4 * 0.9 / (3 * 256)), rel=0.02)
    lengths = layer.linear.parametrizations.weight.original0
    torch.testing.assert_close(lengths[:, 0], weight.norm(dim=1))
    assert not layer.linear.bias.any()


def test_gradcheck() -> None:
    layer = GatedConvolution(3, 3).double()
    parameters = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    names = [name for name, _ in layer.named_parameters()]
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)

    def forward(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,))[0]

    assert torch.autograd.gradcheck(forward, (x, *parameters))


def test_an_even_window_cannot_be_centred() -> None:
    with pytest.raises(ValueError, match="a centred window needs an odd kernel width, not 4"):
        GatedConvolution(4, 4)
    GatedConvolution(4, 4, causal=True)
