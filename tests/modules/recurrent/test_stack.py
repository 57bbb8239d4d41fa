"""Depth, two directions, and the reordering of states."""

from __future__ import annotations

import pytest
import torch

from fairseq_plugins.modules import (
    RECURRENT_KINDS,
    LayerSizes,
    LockedDropout,
    RecurrentKind,
    RecurrentNetwork,
    RecurrentOutput,
    RecurrentStack,
    reorder_states,
)
from fairseq_plugins.modules.recurrent.multi_channel import MultiChannelOptions
from fairseq_plugins.modules.recurrent.stack import reverse
from fairseq_plugins.modules.regularization import dropped_parameters

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


def test_reverse_leaves_padding_in_place() -> None:
    x = torch.arange(1, 9).view(4, 2)
    assert reverse(x, torch.tensor([4, 2])).tolist() == [[7, 4], [5, 2], [3, 6], [1, 8]]
    assert reverse(x, torch.tensor([0, 1])).equal(x)
    assert reverse(x, None).equal(x.flip(0))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_two_directions_equal_torch(kind: str) -> None:
    torch.manual_seed(0)
    stack = RecurrentStack(kind, 3, [5, 5], bidirectional=True).double()
    peer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind](3, 5, 2, bidirectional=True).double()
    for layer in range(2):
        for suffix, side in ("", stack.layers), ("_reverse", stack.backward_layers):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                value = getattr(peer, f"{name}_l{layer}{suffix}")
                getattr(side[layer].rnn, f"{name}_l0").data.copy_(value)
    x, lengths = torch.randn(6, 3, 3).double(), torch.tensor([6, 4, 1])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(peer(packed)[0])
    torch.testing.assert_close(stack(x, lengths).output, expected, **TOLERANCE)


@pytest.mark.parametrize("kind", [name for name, kind in RECURRENT_KINDS.items() if not kind.handles_directions])
def test_backward_direction_counts_from_the_last_token(kind: str) -> None:
    torch.manual_seed(0)
    stack = RecurrentStack(kind, 3, [5], bidirectional=True).double()
    x, lengths = torch.randn(6, 3, 3).double(), torch.tensor([6, 4, 1])
    result = stack(x, lengths, need_details=True)
    for b, length in enumerate(lengths.tolist()):
        mirrored = stack.backward_layers[0](x[:length, b : b + 1].flip(0), None, None, True)
        torch.testing.assert_close(result.output[:length, b, 5:], mirrored.output.flip(0)[:, 0], **TOLERANCE)
        for name, value in mirrored.details.items():
            detail = result.details[f"backward_layers.0.{name}"]
            torch.testing.assert_close(detail[:length, b], value.flip(0)[:, 0], **TOLERANCE)


@pytest.mark.parametrize("kind", RECURRENT_KINDS)
def test_reordered_states_go_on_as_reordered_rows(kind: str) -> None:
    torch.manual_seed(0)
    stack = RecurrentStack(kind, 3, [5, 5]).double()
    x, order = torch.randn(5, 4, 3).double(), torch.tensor([2, 2, 0, 3, 1])
    states = stack(x[:3]).states
    output, _ = stack.step(x[3, order], reorder_states(states, order))
    expected, _ = stack.step(x[3], states)
    torch.testing.assert_close(output, expected[order], **TOLERANCE)


def test_dropout_between_layers_only_in_training() -> None:
    torch.manual_seed(0)
    stack = RecurrentStack("mc_rnn", 3, [5, 5], dropout=torch.nn.Dropout(0.5))
    x = torch.randn(4, 2, 3)
    first, second = stack(x), stack(x)
    assert first.layer_outputs[0].equal(second.layer_outputs[0])
    assert not first.output.equal(second.output)
    stack.eval()
    assert stack(x).output.equal(stack(x).output)


def test_bad_arguments() -> None:
    with pytest.raises(
        ValueError, match="unknown recurrent layer 'sru'; choose from lstm, gru, rnn, dilated_rnn, hm_rnn"
    ):
        RecurrentStack("sru", 3, [5, 5])
    with pytest.raises(ValueError, match="at least one layer, not 0"):
        RecurrentStack("lstm", 3, [])
    stack = RecurrentStack("lstm", 3, [5], bidirectional=True)
    with pytest.raises(ValueError, match="bidirectional stack cannot go on"):
        stack(torch.randn(2, 1, 3), None, (stack.layers[0].initial_state(1),))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_layers_have_widths_of_their_own(bidirectional: bool) -> None:
    stack = RecurrentStack("mc_rnn", 3, [4, 6, 2], bidirectional)
    factor = 2 if bidirectional else 1
    assert [layer.input_size for layer in stack.layers] == [3, 4 * factor, 6 * factor]
    x, lengths = torch.randn(5, 2, 3), torch.tensor([5, 3])
    result = stack(x, lengths)
    assert [output.size(-1) for output in result.layer_outputs] == [4 * factor, 6 * factor, 2 * factor]
    assert result.output.size(-1) == stack.output_size == 2 * factor
    summaries = stack.summaries(result, lengths)
    assert [summary.size(-1) for summary in summaries] == stack.summary_sizes == [4 * factor, 6 * factor, 2 * factor]


def test_summaries_are_the_last_outputs_of_either_direction() -> None:
    stack = RecurrentStack("ho_rnn", 3, [5, 5], bidirectional=True)
    lengths = torch.tensor([4, 2])
    result = stack(torch.randn(4, 2, 3), lengths)
    for summary, output in zip(stack.summaries(result, lengths), result.layer_outputs, strict=True):
        assert summary[:, :5].equal(output[lengths - 1, torch.arange(2), :5])
        assert summary[:, 5:].equal(output[0, :, 5:])


@pytest.mark.parametrize(
    ("kind", "options"),
    [*((kind, None) for kind in RECURRENT_KINDS), ("mc_rnn", MultiChannelOptions(connection_rate=0.1))],
)
def test_drop_connect_is_drawn_once_a_forward_and_agrees_between_backends(
    kind: str, options: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    stack = RecurrentStack(kind, 3, [5, 5], drop_connect=0.5, options=options).double()
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    results = []
    for backend in ("reference", "autograd", "eager", "cpp"):
        monkeypatch.setenv("FAIRSEQ_PLUGINS_BACKEND", backend)
        torch.manual_seed(1)
        output = stack(x).output
        results.append((output, *torch.autograd.grad(output.sin().sum(), list(stack.parameters()), allow_unused=True)))
    for other in results[1:]:
        for value, expected in zip(other, results[0], strict=True):
            torch.testing.assert_close(value, expected, **TOLERANCE)
    assert not stack(x).output.equal(results[-1][0]), "another mask"

    torch.manual_seed(1)
    whole = stack(x)
    torch.manual_seed(1)
    step, states = stack.stepper(2), tuple(layer.initial_state(2) for layer in stack.layers)
    outputs = []
    for x_t in x:
        output, states = step(x_t, states)
        outputs.append(output)
    torch.testing.assert_close(torch.stack(outputs), whole.output, **TOLERANCE)

    plain = RecurrentStack(kind, 3, [5, 5], options=options).double()
    plain.load_state_dict(stack.state_dict())
    assert stack.eval()(x).output.equal(plain(x).output)


def test_drop_connect_drops_elements_of_the_recurrent_weights_alone() -> None:
    for kind in RECURRENT_KINDS:
        # Whatever the kinds before it have drawn: a ReLU of HM-RNN that is closed has no gradient either.
        torch.manual_seed(0)
        stack = RecurrentStack(kind, 3, [12], drop_connect=0.5)
        stack(torch.randn(6, 4, 3)).output.sin().sum().backward()
        names = stack.layers[0].recurrent_parameters()
        assert names
        for name, parameter in stack.layers[0].named_parameters():
            share = (parameter.grad == 0).float().mean().item()
            assert share == pytest.approx(0.5, abs=0.15) if name in names else share < 0.05, (kind, name)


@pytest.mark.parametrize("connection_rate", [0.0, 0.1, 1.0])
def test_drop_connect_drops_connections_and_not_their_distance_from_the_identity(connection_rate: float) -> None:
    torch.manual_seed(0)
    stack = RecurrentStack("mc_rnn", 3, [40], options=MultiChannelOptions(connection_rate=connection_rate))
    layer = stack.layers[0]
    torch.nn.init.normal_(layer.weight_connection)
    whole = layer.connections.detach()
    seen: list[torch.Tensor] = []

    def read(layer: RecurrentNetwork, *_: object) -> None:
        seen.append(layer.connections)

    layer.register_forward_pre_hook(read)
    stack(torch.randn(2, 1, 3))
    assert seen.pop().equal(whole), "without DropConnect"
    stack.drop_connect = 0.75
    stack(torch.randn(2, 1, 3))
    [dropped] = seen
    kept = dropped != 0
    assert kept.float().mean().item() == pytest.approx(0.25, abs=0.03) or connection_rate == 0
    torch.testing.assert_close(dropped[kept], 4 * whole[kept])
    assert kept.diagonal(dim1=1, dim2=2).float().mean().item() == pytest.approx(0.25, abs=0.15), "the identity, too"
    [gradient] = torch.autograd.grad(dropped.sum(), layer.weight_connection)
    torch.testing.assert_close(gradient, 4 * connection_rate * kept if connection_rate else torch.zeros_like(gradient))
    assert set(stack.state_dict()) == {f"layers.0.{name}" for name, _ in layer.named_parameters()}


def test_drop_connect_draws_what_it_drew_where_connections_are_parameters() -> None:
    stack = RecurrentStack("mc_rnn", 3, [5])
    layer = stack.layers[0]
    torch.manual_seed(0)
    found = layer.drop_connected(0.5)
    torch.manual_seed(0)
    expected = dropped_parameters(layer, ["weight_hh", "weight_connection"], 0.5)
    assert found.keys() == expected.keys() and all(found[name].equal(expected[name]) for name in found)
    assert layer.eval().drop_connected(0.5) == {}


def test_locked_dropout_between_layers() -> None:
    """The second layer of a stack without recurrence would show it; so does its input."""
    torch.manual_seed(0)
    stack = RecurrentStack("gru", 3, [5, 8], dropout=LockedDropout(0.5)).double()
    x, seen = torch.randn(6, 2, 3, dtype=torch.float64), []
    stack.layers[1].register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))
    result = stack(x)
    assert result.layer_outputs[0].ne(0).all(), "before dropout"
    assert seen[0].eq(0).any() and seen[0].eq(0).equal(seen[0][:1].eq(0).expand_as(seen[0]))

    # Steps have one mask for the sequence too.
    torch.manual_seed(1)
    whole = stack(x).output
    torch.manual_seed(1)
    step, states = stack.stepper(2), tuple(layer.initial_state(2) for layer in stack.layers)
    outputs = []
    for x_t in x:
        output, states = step(x_t, states)
        outputs.append(output)
    torch.testing.assert_close(torch.stack(outputs), whole, **TOLERANCE)


class _Tower(RecurrentNetwork):
    """Handles depth and, if it is asked to, both directions: sums from either end, and a level for each width."""

    has_cell_state = False

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.input_size = sizes.input_size
        self.is_steppable = sizes.direction != "both"
        self.output_size = sizes.input_size * (2 if sizes.direction == "both" else 1)

    def forward(self, x, lengths=None, state=None, need_details=False) -> RecurrentOutput:
        output = x.cumsum(0)
        if self.sizes.direction == "both":
            output = torch.cat([output, x.flip(0).cumsum(0).flip(0)], dim=-1)
        return RecurrentOutput(output, None, {"inputs": x} if need_details else {})

    def recurrent_parameters(self) -> list[str]:
        return []

    def summaries(self, result: RecurrentOutput, lengths: torch.Tensor | None) -> list[torch.Tensor]:
        return [level * result.output[-1] for level in range(len(self.sizes.hidden_sizes))]

    @property
    def summary_sizes(self) -> list[int]:
        return [self.output_size] * len(self.sizes.hidden_sizes)


@pytest.mark.parametrize("handles_directions", [False, True])
def test_a_kind_that_handles_depth_or_directions_is_neither_repeated_nor_reversed(
    handles_directions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[LayerSizes] = []

    def make(options: object, sizes: LayerSizes) -> _Tower:
        made.append(sizes)
        return _Tower(sizes)

    kind = RecurrentKind("tower", "", RECURRENT_KINDS["lstm"].options, make, handles_directions, handles_depth=True)
    monkeypatch.setitem(RECURRENT_KINDS, "tower", kind)
    dropout = torch.nn.Dropout(0.5)
    stack = RecurrentStack("tower", 3, [5, 7], bidirectional=True, dropout=dropout)
    assert [sizes.direction for sizes in made] == (["both"] if handles_directions else ["forwards", "backwards"])
    assert all(tuple(sizes.hidden_sizes) == (5, 7) and sizes.dropout is dropout for sizes in made)
    x, lengths = torch.randn(4, 2, 3), torch.tensor([4, 4])
    result = stack(x, lengths, need_details=True)
    torch.testing.assert_close(result.output, torch.cat([x.cumsum(0), x.flip(0).cumsum(0).flip(0)], dim=-1))
    assert all(value.equal(x) for value in result.details.values()), "details are in the sentence's order"
    assert set(result.details) == {"layers.0.inputs", *([] if handles_directions else ["backward_layers.0.inputs"])}
    assert [summary.size(-1) for summary in stack.summaries(result, lengths)] == stack.summary_sizes == [6, 6]
    assert not stack.is_steppable
    with pytest.raises(TypeError, match="does not run step by step"):
        stack.stepper(2)
