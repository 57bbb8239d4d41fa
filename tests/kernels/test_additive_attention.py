"""Additive attention after its projections: each backend against the one that reads like the paper."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_plugins.kernels import BACKEND_VARIABLE, dispatch
from fairseq_plugins.kernels.additive_attention import additive_attention, reference

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


def problem(
    batch_size: int, targets: int, sources: int, features: int, values: int, dtype: torch.dtype = torch.float64
) -> tuple[list[Tensor], Tensor]:
    """Query, keys, values and v, and a mask that leaves each sentence a position."""
    torch.manual_seed(0)
    shapes = [(batch_size, targets, features), (batch_size, sources, features), (batch_size, sources, values)]
    given = [torch.randn(*shape, dtype=dtype).requires_grad_() for shape in [*shapes, (features,)]]
    mask = torch.rand(batch_size, sources) < 0.4
    mask[:, sources // 2] = False
    return given, mask


@pytest.mark.parametrize("backend", ["eager", "cpp"])
@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (3, 2, 5, 7, 4), (2, 3, 4, 33, 6)])
def test_equals_the_reference_gradients_too(
    sizes: tuple[int, ...], is_masked: bool, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    given, mask = problem(*sizes)
    mask = mask if is_masked else None
    query, keys, _, score = given
    assert dispatch.choose("additive_attention", query, keys, score).name == backend
    expected = reference.additive_attention(*given, mask)
    actual = additive_attention(*given, mask)
    torch.testing.assert_close(actual, expected, **TOLERANCE)
    gradients = [torch.randn_like(each) for each in expected]
    torch.testing.assert_close(
        torch.autograd.grad(actual, given, gradients), torch.autograd.grad(expected, given, gradients), **TOLERANCE
    )


@pytest.mark.parametrize("backend", ["eager", "cpp"])
def test_in_single_precision(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To float32's accuracy, with energies of some tens too."""
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    given, mask = problem(4, 3, 9, 40, 5, torch.float32)
    with torch.no_grad():
        given[3].mul_(4)
    expected = reference.additive_attention(*(each.double() for each in given), mask)
    actual = additive_attention(*given, mask)
    torch.testing.assert_close([each.double() for each in actual], list(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["reference", "eager", "cpp"])
def test_a_sentence_of_nothing_but_padding_reads_zeros_and_changes_no_gradient(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    given, mask = problem(3, 2, 5, 7, 4)
    alone, weights = reference.additive_attention(*(each[:2] for each in given[:3]), given[3], mask[:2])
    mask[2] = True
    context, all_weights = additive_attention(*given, mask)
    assert not context[2].any() and not all_weights[2].any()
    torch.testing.assert_close((context[:2], all_weights[:2]), (alone, weights), **TOLERANCE)
    gradients = torch.autograd.grad(context.pow(2).sum(), given)
    expected = torch.autograd.grad(alone.pow(2).sum(), given)
    torch.testing.assert_close(gradients, expected, **TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("backend", ["eager", "cpp"])
def test_what_is_not_a_number_stays_so(backend: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken query has to be seen in the weights of its position, and in no others."""
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    given, mask = problem(2, 3, 9, 40, 5, dtype)
    with torch.no_grad():
        given[0][1, 2, 7] = torch.nan
    weighted, _ = additive_attention(*given, mask)
    assert weighted[1, 2].isnan().all()
    assert weighted[0].isfinite().all() and weighted[1, :2].isfinite().all()


@pytest.mark.parametrize("backend", ["eager", "cpp"])
def test_gradients_by_finite_differences(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    given, mask = problem(2, 2, 3, 3, 2)
    torch.autograd.gradcheck(lambda *each: additive_attention(*each, mask), given)


@pytest.mark.parametrize("backend", ["reference", "eager", "cpp"])
def test_another_default_device_changes_nothing(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    given, mask = problem(2, 3, 4, 3, 2)
    expected = additive_attention(*given, mask)
    with torch.device("meta"):
        assert all(map(torch.equal, additive_attention(*given, mask), expected))


def test_by_hand() -> None:
    """Two positions whose energies differ by ln 3, and a padded one."""
    keys = torch.tensor([[[0.0], [0.5], [9.0]]], dtype=torch.float64)
    score = torch.log(torch.tensor([3.0], dtype=torch.float64)) / torch.tanh(torch.tensor(0.5, dtype=torch.float64))
    values = torch.tensor([[[8.0], [4.0], [100.0]]], dtype=torch.float64)
    mask = torch.tensor([[False, False, True]])
    context, weights = additive_attention(torch.zeros(1, 1, 1, dtype=torch.float64), keys, values, score, mask)
    torch.testing.assert_close(weights.flatten().tolist(), [0.25, 0.75, 0.0])
    assert context.item() == pytest.approx(5.0)


def test_threads_do_not_change_a_bit() -> None:
    """Each sentence is computed by one thread, and the gradient of v is summed in one order."""
    given, mask = problem(8, 3, 6, 20, 4, torch.float32)
    results = []
    threads = torch.get_num_threads()
    try:
        for number in 1, 2:
            torch.set_num_threads(number)
            context, _ = additive_attention(*given, mask)
            results.append([context, *torch.autograd.grad(context.sum(), given)])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))
