"""Dropout: how much is dropped, at random and by itself, and what is left of the rest."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_plugins.kernels import BACKEND_VARIABLE, dispatch
from fairseq_plugins.kernels.dropout import dropout, relu_dropout
from fairseq_plugins.modules.dropout import Dropout

NUMBER = 1 << 20


@pytest.fixture(params=["cpp", "random_bits"], autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, request.param)


def kept_of(p: float) -> torch.Tensor:
    """Which of many elements are kept (N,)."""
    torch.manual_seed(0)
    return dropout(torch.ones(NUMBER), p) != 0


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.65, 0.9])
def test_the_probability_is_met(p: float) -> None:
    deviation = math.sqrt(p * (1 - p) / NUMBER)
    assert abs(kept_of(p).double().mean() - (1 - p)) < 5 * deviation + 1 / 65536


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 7, 64, 256])
def test_neighbours_do_not_know_of_each_other(distance: int) -> None:
    """Four elements share a random number of 64 bits."""
    dropped = (~kept_of(0.3)).double()
    both = (dropped[distance:] * dropped[:-distance]).mean()
    assert abs(both - 0.09) < 5 * math.sqrt(0.09 * 0.91 / NUMBER)


@given(st.floats(0.01, 0.99), st.integers(0, 70), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_what_is_left_makes_up_for_the_rest(p: float, size: int, dtype: torch.dtype) -> None:
    x = torch.full((size, 3), 2.0, dtype=dtype)
    y = dropout(x, p)
    assert y.dtype == dtype and y.shape == x.shape
    rest = y[y != 0].double()
    torch.testing.assert_close(rest, torch.full_like(rest, 2 / (1 - p)), rtol=1e-2, atol=0)


def test_the_expected_value_is_that_of_the_input() -> None:
    """To rounding, not only in the mean: what is kept is scaled by the probability that was drawn with."""
    y = dropout(torch.ones(NUMBER, dtype=torch.float64), 0.1)
    assert y.max().item() * (1 - round(0.1 * 65536) / 65536) == pytest.approx(1, abs=1e-12)


def test_gradients_go_where_the_elements_went() -> None:
    x = torch.randn(50, 40).t().requires_grad_()
    y = dropout(x, 0.4)
    gradient = torch.randn_like(y)
    (actual,) = torch.autograd.grad(y, [x], gradient)
    torch.testing.assert_close(actual, gradient * (y / x).detach())
    assert (actual == 0).any() and (actual != 0).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dropout_of_a_relu(dtype: torch.dtype) -> None:
    """Gradients too, and what is not a number stays so."""
    x = torch.randn(50, 41, dtype=dtype, requires_grad=True)
    y = relu_dropout(x, 0.4)
    gradient = torch.randn_like(y)
    (actual,) = torch.autograd.grad(y, [x], gradient)
    kept = (y != 0).to(dtype) / (1 - round(0.4 * 65536) / 65536)
    torch.testing.assert_close(y, x.relu() * kept)
    torch.testing.assert_close(actual, gradient * kept)
    assert 0.2 < (y != 0).double().mean() < 0.4
    assert torch.equal(relu_dropout(x, 0.4, is_training=False), x.relu())
    assert relu_dropout(torch.full((100,), torch.nan), 0.4).isnan().any()


def test_threads_do_not_change_a_bit() -> None:
    results = []
    threads = torch.get_num_threads()
    try:
        for number in 1, 2:
            torch.set_num_threads(number)
            results.append(kept_of(0.3))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*results)


def test_second_derivatives() -> None:
    x = torch.randn(30, 4, requires_grad=True)
    y = dropout(x, 0.4)
    (first,) = torch.autograd.grad((y**2).sum(), [x], create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), [x])
    torch.testing.assert_close(second, 2 * (y / x).detach() ** 2)


def test_the_same_seed_drops_the_same() -> None:
    assert torch.equal(kept_of(0.3), kept_of(0.3))
    torch.manual_seed(0)
    first, second = (dropout(torch.ones(1000), 0.5) for _ in range(2))
    assert not torch.equal(first, second)


def test_who_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BACKEND_VARIABLE)
    x = torch.randn(10, 3)
    assert dispatch.choose("dropout", x, 0.1).name == "cpp"
    assert dispatch.choose("dropout", x.bfloat16(), 0.1).name == "random_bits"
    for p in 1e-4, 1 - 1e-4, 1.0:
        assert dispatch.choose("dropout", x, p).name == "pytorch"
    assert torch.equal(dropout(x, 1.0), torch.zeros_like(x))
    monkeypatch.setenv(BACKEND_VARIABLE, "pytorch")
    torch.manual_seed(0)
    expected = torch.nn.functional.dropout(x, 0.5)
    torch.manual_seed(0)
    assert torch.equal(dropout(x, 0.5), expected)


def test_it_happens_where_the_tensor_is() -> None:
    """Whatever the default device."""
    with torch.device("meta"):
        assert dropout(torch.ones(10, 3, device="cpu"), 0.5).is_cpu


def test_nothing_is_dropped_outside_training() -> None:
    x = torch.randn(10, 3)
    assert dropout(x, 0.5, is_training=False) is x
    assert dropout(x, 0.0) is x
    module = Dropout(0.5)
    assert not torch.equal(module(x), x)
    assert module.eval()(x) is x
