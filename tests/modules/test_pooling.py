"""Pooling over real tokens, highway layers, attentive pooling, and words by characters and context."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_plugins.modules import (
    AttentivePooling,
    CharacterEncoder,
    ContextEncoder,
    DecomposableAttention,
    Highway,
    pool,
)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 3))
def test_pooling_ignores_padding(lengths: list[int], more: int) -> None:
    x = torch.randn(max(lengths) + more, len(lengths), 3)
    found = pool(x, torch.tensor(lengths), ["max", "mean", "min", "last"])
    for row, length in enumerate(lengths):
        real = x[:length, row]
        expected = torch.cat([real.max(0)[0], real.mean(0), real.min(0)[0], real[-1]])
        torch.testing.assert_close(found.output[row], expected)
        torch.testing.assert_close(real.gather(0, found.positions["max"][row].unsqueeze(0))[0], real.max(0)[0])
    assert set(found.positions) == {"max", "min"}


def test_highway_is_its_equation() -> None:
    torch.manual_seed(0)
    highway = Highway(3, layers=1)
    x = torch.randn(2, 3)
    [transform], [gate] = highway.transforms, highway.gates
    t = torch.sigmoid(x @ gate.weight.t() + gate.bias)
    torch.testing.assert_close(highway(x), t * torch.relu(x @ transform.weight.t() + transform.bias) + (1 - t) * x)
    assert (gate.bias == -1).all()
    with pytest.raises(ValueError, match="at least 1"):
        Highway(3, layers=0)


def test_attentive_pooling_by_hand() -> None:
    """One question of two tokens, one candidate of one: the candidate is its token."""
    pooling = AttentivePooling(2)
    with torch.no_grad():
        pooling.weight.copy_(torch.eye(2))
    q, a = torch.tensor([[[1.0, 0.0]], [[0.0, 2.0]]]), torch.tensor([[[0.5, 0.0]]])
    r_q, r_a = pooling(q, torch.tensor([2]), a, torch.tensor([1]))
    g = torch.tanh(torch.tensor([0.5, 0.0]))
    weights = torch.softmax(g, dim=0)
    torch.testing.assert_close(r_q, (weights[0] * q[0] + weights[1] * q[1]))
    torch.testing.assert_close(r_a, a[0])


def test_attentive_pooling_is_its_equations() -> None:
    torch.manual_seed(0)
    pooling = AttentivePooling(3).double()
    q, a = torch.randn(4, 2, 3).double(), torch.randn(5, 2, 3).double()
    lengths = torch.tensor([4, 2]), torch.tensor([3, 5])
    r_q, r_a = pooling(q, lengths[0], a, lengths[1])
    for row in range(2):
        own_q, own_a = q[: lengths[0][row], row].t(), a[: lengths[1][row], row].t()  # (D, T), (D, S)
        g = torch.tanh(own_q.t() @ pooling.weight @ own_a)
        torch.testing.assert_close(r_q[row], own_q @ g.amax(dim=1).softmax(0))
        torch.testing.assert_close(r_a[row], own_a @ g.amax(dim=0).softmax(0))


def test_decomposable_attention_is_its_equations() -> None:
    """A token and a row at a time, gradients too."""
    torch.manual_seed(0)
    attention = DecomposableAttention(3, 4).double()
    a, b = torch.randn(4, 2, 3).double().requires_grad_(), torch.randn(5, 2, 3).double().requires_grad_()
    lengths = [4, 2], [3, 5]
    v_1, v_2 = attention(a, torch.tensor(lengths[0]), b, torch.tensor(lengths[1]))
    compared, expected = [], []
    for row, (of_a, of_b) in enumerate(zip(*lengths, strict=True)):
        own_a, own_b = list(a[:of_a, row]), list(b[:of_b, row])
        e = torch.stack([torch.stack([attention.attend(x) @ attention.attend(y) for y in own_b]) for x in own_a])
        for i, x in enumerate(own_a):
            beta = sum(weight * y for weight, y in zip(e[i].softmax(0), own_b, strict=True))
            expected.append(attention.compare(torch.cat([x, beta])))
            compared.append(v_1[i, row])
        for j, y in enumerate(own_b):
            alpha = sum(weight * x for weight, x in zip(e[:, j].softmax(0), own_a, strict=True))
            expected.append(attention.compare(torch.cat([y, alpha])))
            compared.append(v_2[j, row])
    inputs = [a, b, *attention.parameters()]
    torch.testing.assert_close(torch.stack(compared), torch.stack(expected))
    gradients = [
        torch.autograd.grad(torch.stack(x).square().sum(), inputs, retain_graph=True) for x in (compared, expected)
    ]
    torch.testing.assert_close(*gradients)
    assert attention.compare[4].weight.shape == (4, 4) and attention.compare[1].weight.shape == (4, 6)
    with pytest.raises(ValueError, match="a has 2 rows, b 1"):
        attention(a, torch.tensor(lengths[0]), b[:, :1], torch.tensor([3]))


def test_words_by_characters() -> None:
    torch.manual_seed(0)
    encoder = CharacterEncoder(["a", "ab", "ba", "abcdef"], embed_dim=3, hidden_size=2, longest=4)
    assert encoder.spelling.tolist()[3] == [1, 2, 3, 4], "the rest of a long word is not read"
    output = encoder(torch.tensor([[0, 1], [2, 3]]))
    assert output.shape == (2, 2, 4)
    torch.testing.assert_close(encoder(torch.tensor([[2]]))[0, 0], output[1, 0])
    assert not torch.allclose(output[0, 1], output[1, 0]), "the order of characters counts"


def test_context_of_ragged_texts_is_that_of_packed_ones() -> None:
    torch.manual_seed(0)
    published = torch.nn.LSTM(3, 2, num_layers=2, bidirectional=True)
    encoder = ContextEncoder.of(published.state_dict())
    x, lengths = torch.randn(5, 3, 3), torch.tensor([5, 2, 1])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(published(packed)[0])
    torch.testing.assert_close(encoder(x, lengths), expected)
    with pytest.raises(ValueError, match="weight_hh_l1 of the shape \\(8, 2\\) was expected"):
        ContextEncoder.of({**published.state_dict(), "weight_hh_l1": torch.zeros(1, 1)})
