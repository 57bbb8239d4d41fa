"""The continuous cache: all words at once, and word by word."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_plugins.modules import continuous_cache
from fairseq_plugins.modules.continuous_cache import cache_probabilities, cache_reference, with_cache


@settings(max_examples=30)
@given(
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(1, 9),
    st.floats(0, 2),
    st.just(0.0) | st.floats(0.05, 0.95),
)
def test_all_at_once_equals_word_by_word(length: int, window: int, chunk: int, theta: float, weight: float) -> None:
    torch.manual_seed(length)
    outputs, words = torch.randn(length, 4).double(), torch.randint(5, (length,))
    distributions = torch.randn(length, 5).double().log_softmax(-1)
    own = distributions.gather(1, words.unsqueeze(1)).squeeze(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(continuous_cache, "CHUNK", chunk)
        found = with_cache(own, cache_probabilities(outputs, words, window, theta), window, weight)
    expected = cache_reference(outputs, words, distributions, window, theta, weight)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    assert found[: window + 1].equal(own[: window + 1]), "it has no say before more than window words were read"


def test_a_repeated_text_becomes_probable() -> None:
    words = torch.arange(5).repeat(20)
    outputs = torch.eye(5)[words.roll(1)]
    own = torch.full((100,), 0.2).log()
    mixed = with_cache(own, cache_probabilities(outputs, words, 10, 20.0), 10, 0.5)
    torch.testing.assert_close(mixed[11:].exp(), torch.full((89,), 0.6))
