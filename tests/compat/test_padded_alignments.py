"""Alignments of padded sentences."""

from __future__ import annotations

import pytest
import torch
from fairseq import utils

import fairseq_plugins  # noqa: F401


def attention(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows)


@pytest.mark.parametrize("source", [[1, 1, 7, 8, 2], [7, 8, 2, 1, 1]], ids=["left-padded", "right-padded"])
@pytest.mark.parametrize("shown", ["left", "right"])
def test_alignments_do_not_depend_on_the_padding_side(source: list[int], shown: str) -> None:
    weights = attention([0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.3, 0.3, 0.4])
    padding = torch.zeros(3, 2)
    weights = torch.cat([padding, weights] if shown == "left" else [weights, padding], dim=1)
    source, target = torch.tensor(source), torch.tensor([9, 9, 2])
    assert utils.extract_hard_alignment(weights, source, target, pad=1, eos=2) == [(1, 0), (0, 1)]
    soft = utils.extract_soft_alignment(weights, source, target, pad=1, eos=2)
    assert soft[0] == ["0.100000", "0.800000", "0.100000"]
