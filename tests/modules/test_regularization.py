"""Masks: where they are alike, what they keep in expectation, and that they act in training only."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fairseq_plugins.modules import LockedDropout, embedding_dropout
from fairseq_plugins.modules.regularization import dropped_parameters, with_parameters


def test_locked_dropout_has_one_mask_for_all_steps() -> None:
    torch.manual_seed(0)
    dropout, x = LockedDropout(0.25), torch.ones(7, 40, 50)
    factor = dropout(x)
    assert factor.equal(factor[:1].expand_as(factor))
    torch.testing.assert_close(factor[0].unique(), torch.tensor([0, 1 / 0.75]))
    assert (factor[0] == 0).float().mean().item() == pytest.approx(0.25, abs=0.05)
    assert not (factor[0, 0] == factor[0, 1]).all(), "rows have masks of their own"
    assert dropout.eval()(x) is x
    assert LockedDropout(0.0)(x) is x


def test_locked_dropout_of_steps_keeps_its_mask() -> None:
    torch.manual_seed(0)
    dropout, x = LockedDropout(0.5), torch.ones(4, 3, 6)
    drop = dropout.for_steps()
    factor = torch.stack([drop(x_t) for x_t in x])
    assert factor.equal(factor[:1].expand_as(factor)) and not factor.equal(torch.ones_like(factor))
    assert not torch.stack([dropout.for_steps()(x[0]) for _ in range(20)]).std(0).eq(0).any(), "each sequence its own"
    assert dropout.eval().for_steps()(x[0]).equal(x[0])


def test_embedding_dropout_drops_words() -> None:
    torch.manual_seed(0)
    embedding = nn.Embedding(500, 3)
    tokens = torch.arange(500).repeat(2, 1)
    factor = embedding_dropout(embedding, tokens, 0.1) / embedding(tokens)
    assert factor[0].equal(factor[1]), "all places alike"
    torch.testing.assert_close(factor, factor[..., :1].expand_as(factor))
    assert (factor[0, :, 0] == 0).float().mean().item() == pytest.approx(0.1, abs=0.05)
    assert embedding_dropout(embedding.eval(), tokens, 0.1).equal(embedding(tokens))


def test_dropped_parameters_lead_gradients_to_what_is_kept() -> None:
    torch.manual_seed(0)
    linear = nn.Linear(30, 20)
    dropped = dropped_parameters(linear, ["weight"], 0.5)
    kept = dropped["weight"] != 0
    torch.testing.assert_close(dropped["weight"], torch.where(kept, 2 * linear.weight, 0))
    x = torch.randn(4, 30)
    output = with_parameters(linear, dropped, linear, x)
    torch.testing.assert_close(output, nn.functional.linear(x, dropped["weight"], linear.bias))
    output.sum().backward()
    assert (linear.weight.grad != 0).equal(kept)
    torch.testing.assert_close(linear(x), nn.functional.linear(x, linear.weight, linear.bias))
    assert dropped_parameters(linear.eval(), ["weight"], 0.5) == {}


def test_probabilities() -> None:
    with pytest.raises(ValueError, match="at least 0 and below 1, not 1.5"):
        LockedDropout(1.5)
