"""Diverse beam search over batches of a set."""

from __future__ import annotations

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.search import DiverseBeamSearch
from torch import Tensor

from fairseq_plugins import compat


def steps(numbers: list[int], kept: list[int]) -> list[tuple[Tensor, ...]]:
    """Three steps of a batch of sentences with these numbers, of which ``kept`` are left for the last one."""
    torch.manual_seed(1)
    dictionary = Dictionary()
    for number in range(9):
        dictionary.add_symbol(f"word{number}")
    search = DiverseBeamSearch(dictionary, num_groups=2, diversity_strength=5.0)
    ids, beam = torch.tensor(numbers), 4
    lprobs = torch.randn(3, len(numbers), beam, len(dictionary)).log_softmax(-1)
    scores = torch.randn(len(numbers), beam, 3).cumsum(-1)
    tokens = torch.zeros(len(numbers), 3, dtype=torch.long)
    first = search.step(0, lprobs[0], scores[:, :, :0], tokens, ids)
    second = search.step(1, lprobs[1], scores[:, :, :1], tokens, ids)
    third = search.step(2, lprobs[2][kept], scores[kept][:, :, :2], tokens[kept], ids[kept])
    return [first, second, third]


@pytest.mark.parametrize("numbers", [[0, 1, 2], [7, 3, 11], [2, 0, 1], [1 << 40, 5, 0]])
def test_the_numbers_of_sentences_do_not_matter(numbers: list[int]) -> None:
    compat.apply()
    for found, expected in zip(steps(numbers, [0, 2]), steps([0, 1, 2], [0, 2]), strict=True):
        for mine, other in zip(found, expected, strict=True):
            assert torch.equal(mine, other)


def test_groups_differ() -> None:
    """What the repair must not undo: the groups of a sentence begin with different words."""
    _, words, _ = steps([7, 3, 11], [0])[0]
    for row in words.view(3, -1, 2):
        assert not set(row[:, 0].tolist()) & set(row[:, 1].tolist())
