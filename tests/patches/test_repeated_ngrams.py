"""``--no-repeat-ngram-size``, held to a loop over n-grams."""

from __future__ import annotations

import pytest
import torch
from fairseq.ngram_repeat_block import NGramRepeatBlock
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_plugins.patches.repeated_ngrams import repair_repeated_ngrams

from .unpatched import needless, original_of

PAD, EOS, WORDS = 1, 2, 9
LONGEST = 8
words = st.integers(4, WORDS - 1)


def buffer(rows: list[list[int]]) -> Tensor:
    """What the beam search keeps: the end of a sentence, the words so far, and padding as long as the output may be."""
    return torch.tensor([[EOS, *row, *[PAD] * (LONGEST + 1 - len(row))] for row in rows])


def forbidden(row: list[int], size: int) -> set[int]:
    """The words that would complete an n-gram which is there already."""
    ngrams = {tuple(row[start : start + size]) for start in range(len(row) - size + 1)}
    return {word for word in range(WORDS) if len(row) >= size and (*row[len(row) - size + 1 :], word) in ngrams}


def after(rows: list[list[int]], size: int, lprobs: Tensor | None = None) -> Tensor:
    lprobs = torch.full((len(rows), WORDS), -2.0) if lprobs is None else lprobs
    return NGramRepeatBlock(size)(buffer(rows), lprobs, len(rows), 1, len(rows[0]))


def impossible(lprobs: Tensor) -> list[set[int]]:
    return [set(row.eq(-torch.inf).nonzero().flatten().tolist()) for row in lprobs]


@settings(max_examples=200)
@given(st.data(), st.integers(1, 4), st.integers(0, LONGEST), st.integers(1, 4))
def test_what_would_repeat_is_forbidden_and_nothing_else(data: st.DataObject, size: int, step: int, count: int) -> None:
    rows = data.draw(st.lists(st.lists(words, min_size=step, max_size=step), min_size=count, max_size=count))
    lprobs = after(rows, size)
    assert impossible(lprobs) == [forbidden(row, size) for row in rows]
    assert set(lprobs.flatten().tolist()) <= {-2.0, -torch.inf}


def test_the_end_of_a_sentence_is_never_forbidden() -> None:
    assert impossible(after([[5, 6, 7]], 1)) == [{5, 6, 7}], "though the buffer begins with one"


def test_what_is_the_only_way_to_go_on_stays() -> None:
    """A prefix that repeats itself: beam search has made all other words impossible."""
    lprobs = torch.full((2, WORDS), -torch.inf)
    lprobs[0, 5] = -3.0
    lprobs[1, 6:8] = -4.0
    found = after([[5, 4], [6, 6]], 1, lprobs)
    assert found[0, 5] == -3.0 and found[0].isfinite().sum() == 1
    assert found[1, 7] == -4.0 and found[1].isfinite().sum() == 1


@pytest.mark.parametrize("size", [1, 2, 3])
def test_fairseq_forbids_nothing(size: int) -> None:
    block = NGramRepeatBlock(size, use_extension=False)
    lprobs = original_of(NGramRepeatBlock, "forward")(block, buffer([[5, 5, 5, 5]]), torch.zeros(1, WORDS), 1, 1, 4)
    assert impossible(lprobs) == [set()], needless(repair_repeated_ngrams)
