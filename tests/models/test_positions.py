"""Positions: learned or sinusoidal, and begun anywhere in training."""

from __future__ import annotations

import math

import pytest
import torch

from fairseq_plugins.errors import InputError
from fairseq_plugins.models.positions import Positions
from tests.models.test_double_path import TOLERANCE, make_model

PAD = 1
TOKENS = torch.tensor([[PAD, 5, 6, 7], [5, 6, PAD, PAD]])


@pytest.mark.parametrize("is_sinusoidal", [False, True])
def test_positions_count_from_the_first_token_on(is_sinusoidal: bool) -> None:
    positions = Positions(10, 8, PAD, is_sinusoidal)
    table = positions.weight[PAD + 1 :]
    embedded = positions(TOKENS)
    assert embedded[0, 1:].equal(table[:3]) and embedded[1, :2].equal(table[:2])
    assert not embedded[TOKENS == PAD].any()
    assert positions(TOKENS[:, :3], {}).equal(table[2].view(1, 1, 8)), "the last one, while decoding"


def test_embeddings_that_are_too_small() -> None:
    with pytest.raises(InputError, match="--positions sinusoidal needs embeddings of 4 numbers at least, not 3"):
        Positions(10, 3, PAD, is_sinusoidal=True)


def test_sinusoidal_positions_are_those_of_the_transformer() -> None:
    positions = Positions(50, 8, PAD, is_sinusoidal=True)
    assert not positions.weight.requires_grad
    for place in 0, 7, 49:
        # fairseq counts from the index of padding on, and has the sines first.
        angles = [(place + PAD + 1) * 10000 ** (-i / 3) for i in range(4)]
        expected = [*map(math.sin, angles), *map(math.cos, angles)]
        found = positions.weight[place + PAD + 1] / (0.1 * math.sqrt(2))
        torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-4)
    assert Positions(500, 64, PAD, is_sinusoidal=True).weight.square().mean().sqrt() == pytest.approx(0.1, rel=0.02)


def test_a_shift_moves_sentences_in_training_alone() -> None:
    torch.manual_seed(0)
    positions = Positions(10, 4, PAD, shift=3)
    tokens = torch.full((500, 4), 5).masked_fill(torch.arange(4) == 0, PAD)
    weight = positions.weight.detach()
    firsts = []
    for embedded in positions(tokens).detach():
        first = next(i for i, row in enumerate(weight) if row.equal(embedded[1]))
        assert not embedded[0].any(), "padding has no position"
        assert embedded[1:].equal(weight[first : first + 3]), "one after the other"
        firsts.append(first)
    assert set(firsts) == {PAD + 1 + shift for shift in range(4)}
    assert positions.eval()(tokens)[:, 1:].equal(weight[PAD + 1 : PAD + 4].expand(500, 3, 4))


def test_no_shift_goes_beyond_the_last_position() -> None:
    positions = Positions(5, 4, PAD, shift=100)
    tokens = torch.full((200, 4), 5)
    ends = {tuple(row[-1].tolist()) for row in positions(tokens).detach()}
    assert ends == {tuple(row.tolist()) for row in positions.weight[-2:].detach()}


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_a_model_whose_positions_are_shifted_decodes_as_it_reads(positions: str) -> None:
    model = make_model(positions=positions, position_shift=7)
    encoded = model.encoder(torch.tensor([[5, 6, 7, 2]]))
    target = torch.tensor([[2, 8, 9, 4, 5]])
    expected, _ = model.decoder(target, encoded)
    incremental_state: dict = {}
    for t in range(5):
        logits, _ = model.decoder(target[:, : t + 1], encoded, incremental_state)
        torch.testing.assert_close(logits[:, 0], expected[:, t], **TOLERANCE)
    torch.manual_seed(1)
    model.train()(torch.tensor([[5, 6, 7, 2]]), None, target)[0].sin().sum().backward()
    assert (model.encoder.embed_positions.weight.grad is None) == (positions == "sinusoidal")
