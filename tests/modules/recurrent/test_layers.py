"""Properties of recurrent layers: nothing depends on batch-mates or padding, and a sequence can be split anywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_plugins.kernels.multi_channel.specification import CONNECTIONS, GATES
from fairseq_plugins.modules import ConventionalRNN, HigherOrderRNN, MultiChannelRNN, RecurrentNetwork
from fairseq_plugins.modules.recurrent.connected import ConnectedRNN

from .kinds import HIDDEN, SIZE, networks

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """x (T, B, D) with noise at padding, and lengths (B,)."""
    lengths = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    steps = max(1, max(lengths)) + draw(st.integers(0, 3))
    return torch.randn(steps, len(lengths), SIZE, dtype=torch.float64), torch.tensor(lengths)


def assert_same_state(actual: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, **TOLERANCE)


@settings(max_examples=60)
@given(networks(), batches())
def test_each_row_is_what_it_is_alone(layer: RecurrentNetwork, batch: tuple[Tensor, Tensor]) -> None:
    x, lengths = batch
    together = layer(x, lengths, None, True)
    for b, length in enumerate(lengths.tolist()):
        assert not together.output[length:, b].any()
        state = layer.initial_state(1)
        if length:
            alone = layer(x[:length, b : b + 1], None, None, True)
            state = alone.state
            torch.testing.assert_close(together.output[:length, b], alone.output[:, 0], **TOLERANCE)
            for name, value in alone.details.items():
                torch.testing.assert_close(together.details[name][:length, b], value[:, 0], **TOLERANCE)
        assert_same_state([s[b : b + 1] for s in together.state], state)


@settings(max_examples=60)
@given(networks(), batches(), st.integers(0, 12))
def test_a_sequence_split_anywhere_is_the_whole(layer: RecurrentNetwork, batch: tuple[Tensor, Tensor], at: int) -> None:
    x, lengths = batch
    whole = layer(x, lengths, None, True)
    at = min(at, len(x))
    parts, state = [], None
    for start, end in ((0, at), (at, len(x))):
        if start == end:
            continue
        part = layer(x[start:end], (lengths - start).clamp(0, end - start), state, True)
        parts.append(part)
        state = part.state
    torch.testing.assert_close(torch.cat([p.output for p in parts]), whole.output, **TOLERANCE)
    for name, value in whole.details.items():
        torch.testing.assert_close(torch.cat([p.details[name] for p in parts]), value, **TOLERANCE)
    assert_same_state(state, whole.state)


@settings(max_examples=40)
@given(networks(), st.integers(1, 8), st.integers(1, 3))
def test_steps_equal_the_sequence_gradients_too(layer: RecurrentNetwork, steps: int, batch_size: int) -> None:
    x = torch.randn(steps, batch_size, SIZE, dtype=torch.float64)
    h0, c0 = torch.randn(2, batch_size, layer.output_size, dtype=torch.float64).unbind()
    start = layer.initial_state(batch_size, h0, c0)
    whole = layer(x, None, start)
    state, outputs = start, []
    for x_t in x:
        output, state = layer.step(x_t, state)
        outputs.append(output)
    by_steps = torch.stack(outputs)
    assert_same_state(state, whole.state)
    torch.testing.assert_close(by_steps, whole.output, **TOLERANCE)
    gradients = [
        torch.autograd.grad(output.square().sum(), list(layer.parameters()), allow_unused=True)
        for output in (whole.output, by_steps)
    ]
    for a, b in zip(*gradients, strict=True):
        if a is not None:
            torch.testing.assert_close(a, b, **TOLERANCE)


@pytest.mark.parametrize("cell", GATES)
def test_conventional_layer_equals_packed_torch(cell: str) -> None:
    torch.manual_seed(0)
    layer = ConventionalRNN(SIZE, HIDDEN, cell).double()
    x, lengths = torch.randn(6, 4, SIZE).double(), torch.tensor([3, 6, 1, 5])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    expected, last = layer.rnn(packed)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(expected)
    result = layer(x, lengths)
    torch.testing.assert_close(result.output, expected, **TOLERANCE)
    hidden, memory = last if cell == "lstm" else (last, None)
    torch.testing.assert_close(result.state.hidden, hidden[0], **TOLERANCE)
    if memory is not None:
        torch.testing.assert_close(result.state.cell_state, memory[0], **TOLERANCE)


@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
def test_parameters_have_the_layout_of_torch_cells(cell: str, connection: str) -> None:
    layer = MultiChannelRNN(3, 5, 4, cell, connection)
    peer = {"lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell, "rnn": torch.nn.RNNCell}[cell](3, 5)
    shapes = {name: tuple(p.shape) for name, p in layer.named_parameters()}
    expected = {name: tuple(p.shape) for name, p in peer.named_parameters()}
    rows = expected["weight_hh"][0]
    if connection == "gate":
        del expected["weight_hh"]
    expected["weight_connection"] = (4, 5 if connection == "state" else rows, 5)
    expected |= {"attention_v": (5, 5 + 3), "attention_r": (5,)}
    assert shapes == expected


def test_connections_start_as_asked() -> None:
    for weight in MultiChannelRNN(3, 5, 3).weight_connection.detach():
        assert weight.equal(torch.eye(5))
    for weight in MultiChannelRNN(3, 5, 3, connection_init="orthogonal").weight_connection.detach():
        torch.testing.assert_close(weight @ weight.T, torch.eye(5))
        assert not weight.equal(torch.eye(5))
    assert MultiChannelRNN(3, 5, 3, connection="gate").weight_connection.abs().max() <= 5**-0.5
    for weight in HigherOrderRNN(3, 5, 4).weight_connection.detach():
        torch.testing.assert_close(weight @ weight.T, torch.eye(5) / 16)
    for weight in HigherOrderRNN(3, 5, 4, connection_init="identity").weight_connection.detach():
        assert weight.equal(torch.eye(5) / 4)


SLOW: dict[str, tuple[Callable[..., ConnectedRNN], float]] = {
    "mc_rnn": (MultiChannelRNN, 1.0),
    "ho_rnn": (partial(HigherOrderRNN, connection_init="identity"), 1 / 3),
}
"""The layer that starts as the identity, and times what."""


@pytest.mark.parametrize("kind", SLOW)
def test_slow_connections_equal_the_identity_and_a_share_of_the_rest(kind: str) -> None:
    make, scale = SLOW[kind]
    slow, plain = (make(3, 5, 3, connection_rate=rate).double() for rate in (0.1, 1.0))
    identity = torch.eye(5, dtype=torch.double) * scale
    x = torch.randn(6, 2, 3, dtype=torch.double)
    plain.load_state_dict(slow.state_dict())
    # As long as P is the identity, which was rounded to float32.
    torch.testing.assert_close(slow(x).output, plain(x).output, rtol=0, atol=1e-7)

    learned = torch.randn(3, 5, 5, dtype=torch.double)
    with torch.no_grad():
        slow.weight_connection.copy_(learned)
        plain.weight_connection.copy_(identity + 0.1 * (learned - identity))
    torch.testing.assert_close(slow(x).output, plain(x).output)
    torch.testing.assert_close(slow.step(x[0], slow.initial_state(2))[0], plain.step(x[0], plain.initial_state(2))[0])
    of_slow, of_plain = (torch.autograd.grad(each(x).output.sum(), each.weight_connection)[0] for each in (slow, plain))
    torch.testing.assert_close(of_slow, 0.1 * of_plain)


@pytest.mark.parametrize("options", [{"connection": "gate"}, {"connection_init": "orthogonal"}])
def test_connections_that_start_otherwise_have_no_rate(options: dict) -> None:
    layer = MultiChannelRNN(3, 5, 3, connection_rate=0.1, **options)
    assert layer.connections is layer.weight_connection


def test_channel_attention_is_a_distribution() -> None:
    layer = MultiChannelRNN(3, 5, 4)
    attention = layer(torch.randn(6, 2, 3), torch.tensor([6, 3]), need_details=True).details["channel_attention"]
    torch.testing.assert_close(attention.sum(-1), (torch.arange(6)[:, None] < torch.tensor([6, 3])).float())
    assert layer(torch.randn(6, 2, 3)).details == {}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"channels": 0}, "at least 1"),
        ({"cell": "sru"}, "unknown cell 'sru'; choose from lstm, gru, rnn"),
        ({"connection": "both"}, "unknown connection 'both'; choose from state, gate"),
        ({"connection_rate": -0.1}, "rate must be at least 0, not -0.1"),
        ({"connection_init": "zero"}, "unknown initialisation 'zero'; choose from identity, orthogonal"),
    ],
)
def test_bad_arguments(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiChannelRNN(3, 5, **arguments)
