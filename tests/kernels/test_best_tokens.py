"""The best tokens of each row: C++ against PyTorch's operations."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_plugins.kernels import BACKEND_VARIABLE, dispatch
from fairseq_plugins.kernels.best_tokens import best_tokens, cpu, reference


@given(st.integers(1, 5), st.integers(1, 300), st.data())
def test_equals_the_reference(rows: int, size: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, min(size, 5)))
    count = data.draw(st.integers(0, min(size - first, 20)))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    # No two of a row are equal, in any order.
    logits = torch.stack([torch.randperm(size) for _ in range(rows)]) * 0.25 - size / 8
    assert dispatch.choose("best_tokens", logits).name == "cpp"
    values, tokens = best_tokens(logits, first, count)
    expected_values, expected_tokens = reference.best_tokens(logits, first, count)
    torch.testing.assert_close(values, expected_values, rtol=1e-5, atol=1e-5)
    assert tokens.equal(expected_tokens)
    torch.testing.assert_close(values, logits.log_softmax(1).gather(1, tokens), rtol=1e-5, atol=1e-5)


def test_rising_numbers_and_what_is_impossible() -> None:
    rising = torch.arange(70.0).expand(2, -1).clone()
    rising[:, 60:] = -torch.inf
    values, tokens = best_tokens(rising, 3, 4)
    assert tokens.tolist() == [[0, 1, 2, 59, 58, 57, 56]] * 2
    torch.testing.assert_close(values, rising.log_softmax(1).gather(1, tokens))


def test_what_is_not_a_number_stays_so() -> None:
    """A broken row has to be seen, in no other row, and its tokens are tokens still."""
    logits = torch.randn(3, 100)
    logits[1, 70] = torch.nan
    for backend in cpu, reference:
        values, tokens = backend.best_tokens(logits, 4, 6)
        assert values[1].isnan().all() and values[[0, 2]].isfinite().all()
        assert len(set(tokens[1].tolist())) == 10 and 0 <= int(tokens.min()) <= int(tokens.max()) < 100


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_give_float32(dtype: torch.dtype) -> None:
    logits = torch.randn(2, 50).to(dtype)
    assert dispatch.choose("best_tokens", logits).name == "reference"
    assert best_tokens(logits, 4, 6)[0].dtype == torch.float32


@pytest.mark.parametrize("backend", ["cpp", "reference"])
@pytest.mark.parametrize(("first", "count"), [(-1, 2), (4, 7), (11, 0), (3, -1)])
def test_more_tokens_than_there_are(first: int, count: int, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    with pytest.raises(ValueError, match=f"there are no {first} \\+ {count} tokens among 10"):
        best_tokens(torch.randn(2, 10), first, count)
