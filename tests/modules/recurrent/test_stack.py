"""Depth, two directions, and the reordering of states."""

from __future__ import annotations

import pytest
import torch

from fairseq_plugins.modules import RECURRENT_KINDS, RecurrentStack, reorder_states
from fairseq_plugins.modules.recurrent.stack import reverse

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
