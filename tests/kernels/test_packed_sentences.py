"""Attention and windows of packed sentences: the kernel against what reads like the paper."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fairseq_plugins.kernels import BACKEND_VARIABLE, dispatch
from fairseq_plugins.kernels.packed_sentences import packed_attention, reference, windows

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
# Of queries and keys: single ones, some, and more than a block of the kernel.
LENGTHS = [(1, 1), (3, 8), (7, 2), (101, 17), (50, 60)]


def offsets(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *itertools.accumulate(lengths)])


def problem(size: int, is_shared: bool, is_causal: bool, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """Query, memory and where their sentences begin."""
    torch.manual_seed(0)
    targets, sources = zip(*LENGTHS, strict=True)
    sources = targets if is_causal else sources
    query = torch.randn(sum(targets), size, dtype=dtype, requires_grad=True)
    memory = torch.randn(sum(sources), size * (1 if is_shared else 2), dtype=dtype, requires_grad=True)
    return query, memory, offsets(targets), offsets(sources)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("size, heads", [(6, 2), (20, 1), (128, 2)])
def test_attention_equals_the_reference_gradients_too(size: int, heads: int, is_shared: bool, is_causal: bool) -> None:
    given = problem(size, is_shared, is_causal)
    assert dispatch.choose("packed_sentences", given[0]).name == "cpp"
    expected = reference.attention(*given, heads, 0.3, is_causal)
    actual = packed_attention(*given, heads, 0.3, is_causal)
    torch.testing.assert_close(actual, expected, **TOLERANCE)
    gradient = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(actual, given[:2], gradient),
        torch.autograd.grad(expected, given[:2], gradient),
        **TOLERANCE,
    )


@pytest.mark.parametrize("size, heads", [(6, 2), (100, 1), (256, 4)])
def test_attention_in_single_precision(size: int, heads: int) -> None:
    given = problem(size, False, False, torch.float32)
    exact = reference.attention(*(x.double() for x in given[:2]), *given[2:], heads, 0.3, False)
    actual = packed_attention(*given, heads, 0.3)
    torch.testing.assert_close(actual.double(), exact, rtol=1e-4, atol=1e-5)
    gradient = torch.randn_like(actual)
    expected = torch.autograd.grad(exact, given[:2], gradient.double())
    torch.testing.assert_close(torch.autograd.grad(actual, given[:2], gradient), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width, before", [(3, 1), (3, 2), (1, 0), (2, 1)])
def test_windows_equal_the_reference_gradients_too(width: int, before: int) -> None:
    x, starts = torch.randn(12, 5, dtype=torch.float64, requires_grad=True), offsets([1, 0, 7, 2, 2])
    expected = reference.windows(x, starts, width, before)
    actual = windows(x, starts, width, before)
    assert torch.equal(actual, expected)
    gradient = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(actual, x, gradient), torch.autograd.grad(expected, x, gradient), **TOLERANCE
    )


def test_gradients_by_finite_differences() -> None:
    x, memory = (torch.randn(4, size, dtype=torch.float64, requires_grad=True) for size in (4, 8))
    starts = offsets([1, 3])
    torch.autograd.gradcheck(lambda *given: packed_attention(*given, starts, starts, 2, 0.7, True), (x, memory))
    torch.autograd.gradcheck(lambda x: windows(x, starts, 3, 1), x)


def test_what_is_not_a_number_stays_in_its_sentence() -> None:
    query, memory, *starts = problem(16, False, False, torch.float32)
    with torch.no_grad():
        query[2] = torch.nan
    context = packed_attention(query, memory, *starts, 2, 0.3)
    assert context[2].isnan().all()
    assert context[:2].isfinite().all() and context[3:].isfinite().all()


def test_a_sentence_without_keys_gets_zeros() -> None:
    context = packed_attention(torch.ones(3, 4), torch.ones(2, 8), offsets([1, 2]), offsets([2, 0]), 1, 1.0)
    assert context.tolist() == [[1.0] * 4, [0.0] * 4, [0.0] * 4]


@pytest.mark.parametrize(
    "operation",
    [
        lambda x, offsets: packed_attention(x, x.repeat(1, 2), offsets, offsets, 2, 1.0),
        lambda x, o: windows(x, o, 3, 1),
    ],
    ids=["attention", "windows"],
)
def test_sentences_that_were_changed_since_are_noticed(operation: Callable[[Tensor, Tensor], Tensor]) -> None:
    offsets = torch.tensor([0, 1, 3])
    output = operation(torch.randn(3, 4, requires_grad=True), offsets)
    offsets[1] = 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_threads_do_not_change_a_bit() -> None:
    query, memory, *starts = problem(64, False, False, torch.float32)
    results = []
    threads = torch.get_num_threads()
    try:
        for number in 1, 2:
            torch.set_num_threads(number)
            context = packed_attention(query, memory, *starts, 4, 0.3)
            results.append([context, *torch.autograd.grad(context.sum(), [query, memory])])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def test_what_does_not_fit() -> None:
    x, starts = torch.zeros(3, 4), offsets([1, 2])
    with pytest.raises(ValueError, match="memory"):
        packed_attention(x, torch.zeros(3, 5), starts, starts, 2, 1.0)
    with pytest.raises(ValueError, match="3 heads do not divide 4"):
        packed_attention(x, x, starts, starts, 3, 1.0)
    with pytest.raises(ValueError, match="must rise from 0 to 3"):
        packed_attention(x, x, starts, offsets([2, 2]), 2, 1.0)
    with pytest.raises(ValueError, match="different numbers of sentences"):
        packed_attention(x, x, starts, offsets([3]), 2, 1.0)
    with pytest.raises(ValueError, match="must rise from 0 to 3"):
        windows(x, torch.tensor([0, 4, 3]), 3, 1)


def test_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs then reads like the paper."""
    monkeypatch.setenv(BACKEND_VARIABLE, "reference")
    given = problem(8, True, False)
    assert torch.equal(packed_attention(*given, 2, 0.3), reference.attention(*given, 2, 0.3, False))
