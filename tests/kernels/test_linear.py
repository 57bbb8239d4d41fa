"""The linear map: oneDNN's against PyTorch's, and where it steps aside."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_plugins.kernels import BACKEND_VARIABLE, dispatch
from fairseq_plugins.kernels.linear import linear, onednn, prepared_linear, reference

pytestmark = pytest.mark.skipif(not onednn.is_available(), reason="this PyTorch has no oneDNN")


@pytest.fixture(autouse=True)
def slow_mkl(monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN computes on whatever CPU the tests run."""
    monkeypatch.setattr(onednn, "has_faster_mkl", lambda: False)


def problem(rows: tuple[int, ...], inputs: int, outputs: int) -> list[Tensor]:
    torch.manual_seed(0)
    given = [torch.randn(*rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)]
    return [each.requires_grad_() for each in given]


@pytest.mark.parametrize("has_fast_mkl", [True, False])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("rows, inputs, outputs", [((129,), 131, 67), ((7, 30), 64, 127), ((3, 5, 11), 130, 77)])
def test_equals_pytorch_gradients_too(
    rows: tuple[int, ...],
    inputs: int,
    outputs: int,
    has_bias: bool,
    has_fast_mkl: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever computes the weight's gradient."""
    monkeypatch.setattr(onednn, "has_fast_transposed_mkl", lambda: has_fast_mkl)
    x, weight, bias = problem(rows, inputs, outputs)
    given = [x, weight, bias] if has_bias else [x, weight]
    assert dispatch.choose("linear", x, weight).name == "onednn"
    actual = linear(*given)
    expected = reference.linear(x, weight, bias if has_bias else None)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    gradient = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(actual, given, gradient),
        torch.autograd.grad(expected, given, gradient),
        rtol=1e-4,
        atol=1e-3,
    )


@pytest.mark.parametrize("bias", [torch.randn(384, 2)[:, 0], torch.zeros(1).expand(384)], ids=["strided", "expanded"])
def test_a_bias_of_any_strides(bias: Tensor) -> None:
    x, weight, _ = problem((512,), 256, 384)
    assert dispatch.choose("linear", x, weight).name == "onednn"
    expected = reference.linear(x, weight, bias)
    torch.testing.assert_close(linear(x, weight, bias), expected, rtol=1e-4, atol=1e-3)
    with torch.no_grad():
        torch.testing.assert_close(prepared_linear(weight, bias, 512)(x), expected, rtol=1e-4, atol=1e-3)


def test_a_single_row_is_pytorchs() -> None:
    x, weight, bias = problem((), 1024, 1024)
    assert dispatch.choose("linear", x, weight).name == "reference"
    assert linear(x, weight, bias).shape == (1024,)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("rows", [129, 5])
def test_without_gradients_and_prepared(rows: int, has_bias: bool) -> None:
    x, weight, bias = problem((129,), 131, 67)
    with torch.no_grad():
        expected = reference.linear(x, weight, bias if has_bias else None)
        torch.testing.assert_close(linear(x, weight, bias if has_bias else None), expected, rtol=1e-4, atol=1e-4)
        # A weight that is read column by column, and fewer rows than it was prepared for.
        product = prepared_linear(weight.t().contiguous().t(), bias if has_bias else None, 129)
        torch.testing.assert_close(product(x[:rows]), expected[:rows], rtol=1e-4, atol=1e-4)


def test_a_weight_is_prepared_for_onednn_where_it_multiplies() -> None:
    x, weight, bias = problem((129,), 131, 67)
    with torch.no_grad():
        product = prepared_linear(weight, bias, 129)
        expected = product(x)
        weight.zero_()
    torch.testing.assert_close(product(x.detach()), expected)  # of a copy
    few = prepared_linear(weight, None, 2)
    assert few(x[:2]).eq(0).all(), "a small product is PyTorch's own"


def test_a_gradient_that_is_expanded_or_transposed() -> None:
    """As sums and transpositions give them."""
    x, weight, bias = problem((96, 4), 100, 90)
    given = [x, weight, bias]
    for reduce in (lambda y: y.sum(), lambda y: (y.transpose(0, 1) * torch.arange(4.0).view(4, 1, 1)).sum()):
        expected = torch.autograd.grad(reduce(reference.linear(*given)), given)
        torch.testing.assert_close(torch.autograd.grad(reduce(linear(*given)), given), expected, rtol=1e-4, atol=1e-3)


def test_frozen_weights_and_inputs_without_a_gradient() -> None:
    x, weight, bias = problem((200,), 100, 90)
    frozen = weight.detach()
    (of_x,) = torch.autograd.grad(linear(x, frozen, bias.detach()).sum(), [x])
    torch.testing.assert_close(of_x, frozen.sum(0).expand_as(x), rtol=1e-4, atol=1e-4)
    (of_weight,) = torch.autograd.grad(linear(x.detach(), weight, None).sum(), [weight])
    torch.testing.assert_close(of_weight, x.detach().sum(0).expand_as(weight), rtol=1e-4, atol=1e-3)


def test_it_steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    large, weight = torch.randn(1000, 64), torch.randn(64, 64)
    assert onednn.refuses(large, weight) is None
    for dtype in torch.float64, torch.bfloat16:
        assert "float32" in onednn.refuses(large.to(dtype), weight.to(dtype))
    assert "small" in onednn.refuses(large[:10], weight)
    assert dispatch.choose("linear", large[:0], weight).name == "reference"
    with torch.autocast("cpu", torch.bfloat16):
        assert "autocast" in onednn.refuses(large, weight)
        assert linear(large, weight).dtype == torch.bfloat16
    with torch.backends.mkldnn.flags(enabled=False):
        assert "oneDNN" in onednn.refuses(large, weight)
    monkeypatch.setattr(onednn, "has_faster_mkl", lambda: True)
    assert "MKL" in onednn.refuses(large, weight)
    assert dispatch.choose("linear", large, weight).name == "reference"
    monkeypatch.setenv(BACKEND_VARIABLE, "reference")
    assert torch.equal(linear(large, weight), torch.nn.functional.linear(large, weight))


def test_gradients_by_finite_differences() -> None:
    x, weight, bias = (each.detach().double().requires_grad_() for each in problem((3, 2), 4, 5))
    torch.autograd.gradcheck(linear, [x, weight, bias])
