"""Attention of a few queries: C++ against PyTorch's own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_plugins.kernels import dispatch
from fairseq_plugins.kernels.dot_product_attention import cpu, dot_product_attention, reference

SIZES = [(1, 1, 1, 1, 1), (3, 2, 5, 7, 4), (2, 4, 1, 9, 16), (2, 3, 4, 33, 37)]
"""Sentences, heads, queries, positions, features."""


def problem(sizes: tuple[int, ...], dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Query, keys and values, with the heads laid out after the positions, keys and values side by side."""
    torch.manual_seed(0)
    sentences, heads, queries, positions, features = sizes
    query = torch.randn(sentences, queries, heads, features, dtype=dtype)
    memory = torch.randn(sentences, positions, 2, heads, features, dtype=dtype)
    keys, values = memory.unbind(2)
    return query.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2)


@pytest.mark.parametrize("kind", ["none", "by sentence", "by query", "added"])
@pytest.mark.parametrize("sizes", SIZES)
def test_equals_pytorchs(sizes: tuple[int, ...], kind: str) -> None:
    sentences, _, queries, positions, _ = sizes
    for dtype, tolerance in (torch.float64, 1e-10), (torch.float32, 1e-5):
        query, keys, values = problem(sizes, dtype)
        mask = None
        if kind != "none":
            mask = torch.rand(sentences, 1, queries if kind == "by query" else 1, positions) < 0.6
            mask[..., positions // 2] = True
        if kind == "added":
            scores = torch.randn(sentences, 1, queries, positions, dtype=dtype)
            mask = scores.masked_fill(~mask, -torch.inf)
        assert dispatch.choose("dot_product_attention", query, keys, values, None).name == "cpp"
        found = dot_product_attention(query, keys, values, mask, 0.7)
        expected = reference.dot_product_attention(query, keys, values, mask, 0.7)
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
        assert found.transpose(1, 2).is_contiguous(), "the heads of a position lie together"


def test_what_is_not_a_number_stays_so() -> None:
    query, keys, values = problem((2, 2, 3, 9, 20), torch.float32)
    query = query.clone()
    query[1, 0, 2, 7] = torch.nan
    found = dot_product_attention(query, keys, values, None, 1.0)
    assert found[1, 0, 2].isnan().all()
    assert found[0].isfinite().all() and found[1, 1].isfinite().all() and found[1, 0, :2].isfinite().all()


def test_a_mask_has_its_gradient() -> None:
    query, keys, values = problem((2, 2, 3, 9, 4), torch.float64)
    mask = torch.zeros(2, 1, 3, 9, dtype=torch.float64, requires_grad=True)
    [found] = torch.autograd.grad(dot_product_attention(query, keys, values, mask, 1.0).sin().sum(), mask)
    assert found.abs().min() > 0


def test_gradients_and_many_queries_are_pytorchs() -> None:
    query, keys, values = problem((2, 2, 3, 9, 4), torch.float64)
    query.requires_grad_()
    assert dispatch.choose("dot_product_attention", query, keys, values, None).name == "reference"
    assert dot_product_attention(query, keys, values, None, 1.0).requires_grad
    with torch.no_grad():
        assert dispatch.choose("dot_product_attention", query, keys, values, None).name == "cpp"
    many = problem((2, 2, 40, 9, 4), torch.float64)
    assert dispatch.choose("dot_product_attention", *many, None).name == "reference"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keys": (2, 2, 9, 5)}, r"keys must have the sizes \[2, 2, 9, 4\]"),
        ({"values": (2, 2, 8, 4)}, r"values must have the sizes \[2, 2, 9, 4\]"),
        ({"keys": (3, 2, 9, 4)}, "keys must have the sizes"),
    ],
)
def test_sizes_are_checked_before_memory_is_read(changes: dict[str, tuple[int, ...]], message: str) -> None:
    sizes = {"query": (2, 2, 3, 4), "keys": (2, 2, 9, 4), "values": (2, 2, 9, 4)} | changes
    query, keys, values = (torch.randn(*size) for size in sizes.values())
    with pytest.raises(ValueError, match=message):
        cpu.dot_product_attention(query, keys, values, None, 1.0)
