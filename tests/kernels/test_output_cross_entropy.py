"""The chunked loss of an output layer against the one that is written in papers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_plugins.kernels import BACKEND_VARIABLE
from fairseq_plugins.kernels.output_cross_entropy import eager, output_cross_entropy, reference

PADDING = 1


def problem(
    tokens: int, types: int, size: int, dtype: torch.dtype = torch.float64, bias: bool = True, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    torch.manual_seed(seed)
    features = torch.randn(tokens, size, dtype=dtype, requires_grad=True)
    weight = torch.randn(types, size, dtype=dtype, requires_grad=True)
    target = torch.randint(0, types, (tokens,))
    target[torch.rand(tokens) < 0.2] = PADDING
    return features, weight, torch.randn(types, dtype=dtype, requires_grad=True) if bias else None, target


def test_another_backend_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    *inputs, target = problem(9, 6, 3)
    loss, _ = output_cross_entropy(*inputs, target, PADDING)
    assert "OutputCrossEntropy" in loss.grad_fn.name()
    monkeypatch.setenv(BACKEND_VARIABLE, "reference")
    loss, _ = output_cross_entropy(*inputs, target, PADDING)
    assert "OutputCrossEntropy" not in loss.grad_fn.name()


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few tokens make several chunks, the last one shorter."""
    monkeypatch.setattr(eager, "_CHUNK_NUMBERS", 100)
    monkeypatch.setattr(eager, "_CHUNK_NUMBERS_ELSEWHERE", 1000)
    monkeypatch.setattr(eager, "_LEAST_CHUNK", 4)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("tokens, types, size", [(1, 2, 1), (4, 7, 3), (37, 11, 5), (41, 130, 6), (0, 5, 2)])
def test_loss_and_gradients_equal_the_reference(
    tokens: int, types: int, size: int, bias: bool, label_smoothing: float
) -> None:
    *inputs, target = problem(tokens, types, size, bias=bias)
    expected, expected_nll = reference.output_cross_entropy(*inputs, target, PADDING, label_smoothing)
    loss, nll = output_cross_entropy(*inputs, target, PADDING, label_smoothing)
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(nll, expected_nll, rtol=1e-10, atol=1e-10)
    assert not nll.requires_grad
    if tokens == 0 or target.eq(PADDING).all():
        assert loss == 0
        return
    given = [tensor for tensor in inputs if tensor is not None]
    found = torch.autograd.grad(0.3 * loss, given)
    torch.testing.assert_close(found, torch.autograd.grad(0.3 * expected, given), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_gradcheck(label_smoothing: float) -> None:
    *inputs, target = problem(9, 6, 3)

    def loss(*inputs: Tensor) -> Tensor:
        return output_cross_entropy(*inputs, target, PADDING, label_smoothing)[0]

    assert torch.autograd.gradcheck(loss, tuple(inputs))


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_what_needs_no_gradient_gets_none(frozen: int) -> None:
    *inputs, target = problem(9, 6, 3)
    expected = torch.autograd.grad(output_cross_entropy(*inputs, target, PADDING, 0.1)[0], inputs)
    inputs[frozen] = inputs[frozen].detach()
    output_cross_entropy(*inputs, target, PADDING, 0.1)[0].backward()
    for number, tensor in enumerate(inputs):
        if number == frozen:
            assert tensor.grad is None
        else:
            torch.testing.assert_close(tensor.grad, expected[number])


def test_without_gradients_none_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    *inputs, target = problem(9, 6, 3)
    expected = output_cross_entropy(*inputs, target, PADDING, 0.1)
    products: list[Callable[..., Tensor]] = []
    product_of = eager._product_of

    def counting(*sizes: Any) -> Callable[..., Tensor]:
        product = product_of(*sizes)
        return lambda *factors: products.append(product) or product(*factors)

    monkeypatch.setattr(eager, "_product_of", counting)
    with torch.no_grad():
        torch.testing.assert_close(output_cross_entropy(*inputs, target, PADDING, 0.1), expected)
    chunks = math.ceil(target.ne(PADDING).sum().item() / 16)
    assert len(products) == chunks


def test_a_tied_table_gets_both_gradients() -> None:
    torch.manual_seed(0)
    table = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 2, 5, 1])

    def gradient(function: object) -> Tensor:
        loss, _ = function(table[torch.tensor([3, 4, 2, 0])].tanh(), table, None, target, PADDING, 0.1)
        return torch.autograd.grad(loss, table)[0]

    torch.testing.assert_close(gradient(output_cross_entropy), gradient(reference.output_cross_entropy))


def test_float32_agrees_with_torch() -> None:
    features, weight, bias, target = problem(50, 40, 8, torch.float32)
    loss, nll = output_cross_entropy(features, weight, bias, target, PADDING)
    expected = torch.nn.functional.cross_entropy(
        features @ weight.T + bias, target, ignore_index=PADDING, reduction="sum"
    )
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(nll, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_takes_its_softmax_in_float32(dtype: torch.dtype) -> None:
    features, weight, bias, target = problem(50, 40, 8)
    exact, _ = output_cross_entropy(features, weight, bias, target, PADDING, 0.1)
    expected = torch.autograd.grad(exact, [features, weight, bias])
    halves = [tensor.detach().to(dtype).requires_grad_() for tensor in (features, weight, bias)]
    loss, nll = output_cross_entropy(*halves, target, PADDING, 0.1)
    assert loss.dtype == nll.dtype == torch.float32
    torch.testing.assert_close(loss, exact.float(), rtol=1e-2, atol=1e-2)
    for found, gradient in zip(torch.autograd.grad(loss, halves), expected, strict=True):
        assert found.dtype == dtype
        assert (found.double() - gradient).norm() < 0.05 * gradient.norm()


@pytest.mark.parametrize("is_autocast", [False, True])
def test_half_precision_keeps_what_rare_types_learn(is_autocast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their probabilities are below what float16 can tell from zero."""
    monkeypatch.setattr(eager, "_CHUNK_NUMBERS", 1000 * 60)
    torch.manual_seed(0)
    features, weight = torch.rand(3000, 8, dtype=torch.float64), 0.1 * torch.randn(60, 8, dtype=torch.float64)
    bias = torch.zeros(60, dtype=torch.float64)
    bias[20:40], bias[40:] = -12, -14
    inputs = [tensor.half().double().requires_grad_() for tensor in (features, weight, bias)]
    target = torch.randint(2, 20, (3000,))
    expected = torch.autograd.grad(output_cross_entropy(*inputs, target, PADDING)[0], inputs[1])[0]
    dtype = torch.float32 if is_autocast else torch.float16
    halves = [tensor.detach().to(dtype).requires_grad_() for tensor in inputs]
    with torch.autocast("cpu", torch.float16, enabled=is_autocast):
        loss = 512 * output_cross_entropy(*halves, target, PADDING)[0]
    found = torch.autograd.grad(loss, halves[1])[0].double() / 512
    for types in (slice(20, 40), slice(40, None)):
        assert (found - expected)[types].norm() < 0.05 * expected[types].norm()


def test_chunks_are_larger_where_no_cache_holds_them() -> None:
    """The meta device is one that is not a CPU."""
    features = torch.zeros(500, 8)
    assert [eager._chunk_size(features, types) for types in (20, 1000)] == [100 // 20, 4]
    assert [eager._chunk_size(features.to("meta"), types) for types in (20, 1000)] == [1000 // 20, 4]
    weight = torch.zeros(20, 8, device="meta", requires_grad=True)
    target = torch.zeros(500, dtype=torch.long, device="meta")
    loss, _ = output_cross_entropy(features.to("meta"), weight, None, target, PADDING)
    assert torch.autograd.grad(loss, weight)[0].shape == weight.shape


def test_no_table_outlives_its_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the size tokens x vocabulary is kept for the backward pass, nor made on the way."""
    sizes: list[int] = []
    new_empty = torch.Tensor.new_empty

    def counted(self: Tensor, *shape: object, **options: object) -> Tensor:
        made = new_empty(self, *shape, **options)
        sizes.append(made.numel())
        return made

    monkeypatch.setattr(torch.Tensor, "new_empty", counted)
    features, weight, bias, target = problem(200, 50, 8)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        output_cross_entropy(features, weight, bias, target, PADDING, 0.1)
    assert sizes and max(sizes) <= 4 * 50
    # The gradients of bias, weight and features, and where the real tokens are.
    assert len(kept) == 4 and max(kept) <= 200 * 8


@pytest.mark.parametrize("backend", ["eager", "reference"])
@pytest.mark.parametrize("wrong", [6, -1, 1 << 40])
def test_targets_that_are_no_types(wrong: int, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    target = torch.tensor([0, 5, wrong, 1])
    message = f"targets must be from 0 to 5, not from {min(0, wrong)} to {max(5, wrong)}"
    with pytest.raises(ValueError, match=message):
        output_cross_entropy(torch.randn(4, 3), torch.randn(6, 3), None, target, padding=1)


@pytest.mark.parametrize("padding", [-100, 1, 77])
def test_padding_is_any_number(padding: int) -> None:
    features, weight, target = torch.randn(3, 4), torch.randn(6, 4), torch.tensor([0, padding, 5])
    loss, _ = output_cross_entropy(features, weight, None, target, padding)
    torch.testing.assert_close(
        loss, torch.nn.functional.cross_entropy(features @ weight.T, target, ignore_index=padding, reduction="sum")
    )
