"""RCRN against the paper's equations, in both readings of Eq. 16."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_plugins.modules import LayerSizes, RecurrentlyControlledRNN, RecurrentStack
from fairseq_plugins.modules.recurrent.registry import recurrent_kind

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


def sentence(rnn: torch.nn.RNNBase, x: Tensor) -> Tensor:
    """The outputs of a network over one sentence (T, D) -> (T, H or 2 H)."""
    return rnn(x.unsqueeze(1))[0].squeeze(1)


def reference(layer: RecurrentlyControlledRNN, x: Tensor, lengths: Tensor) -> Tensor:
    """Eq. 1 to 16, a sentence and a step at a time."""
    rows = []
    for b, length in enumerate(lengths.tolist()):
        c4 = x.new_zeros(layer.output_size)
        row = [x.new_zeros(layer.output_size)] * len(x)
        if length:
            real = x[:length, b]
            networks = layer.forget_controller, layer.output_controller, layer.listener
            for t, (h1, h2, h3) in enumerate(zip(*(sentence(rnn, real) for rnn in networks), strict=True)):
                forget = 1 / (1 + torch.exp(-h1))
                c4 = forget * c4 + (1 - forget) * h3
                row[t] = (h2 if layer.output_gate == "linear" else 1 / (1 + torch.exp(-h2))) * c4
        rows.append(torch.stack(row))
    return torch.stack(rows, dim=1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("output_gate", ["sigmoid", "linear"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_equals_the_reference_gradients_too(cell: str, output_gate: str, bidirectional: bool) -> None:
    torch.manual_seed(0)
    layer = RecurrentlyControlledRNN(3, 4, cell, bidirectional, output_gate).double()
    x = torch.randn(6, 4, 3, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([6, 0, 1, 4])
    results = [layer(x, lengths).output, reference(layer, x, lengths)]
    torch.testing.assert_close(*results, **TOLERANCE)
    gradient = torch.randn_like(results[0])
    inputs = [x, *layer.parameters()]
    torch.testing.assert_close(*(torch.autograd.grad(each, inputs, gradient) for each in results), **TOLERANCE)
    full = torch.full((4,), 6)
    torch.testing.assert_close(layer(x).output, reference(layer, x, full), **TOLERANCE)


def test_what_a_decoder_starts_from() -> None:
    """The forward features at the last real token, the backward ones at the first; zero where there is none."""
    torch.manual_seed(0)
    layer = RecurrentlyControlledRNN(3, 4)
    lengths = torch.tensor([2, 5, 0])
    result = layer(torch.randn(5, 3, 3), lengths)
    [summary] = layer.summaries(result, lengths)
    assert summary.shape[1] == layer.summary_sizes[0]
    for b, length in enumerate([2, 5]):
        assert summary[b, :4].equal(result.output[length - 1, b, :4])
        assert summary[b, 4:].equal(result.output[0, b, 4:])
    assert not summary[2].any()


def test_it_has_the_parameters_of_three_layers() -> None:
    def count(module: torch.nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    deep = torch.nn.LSTM(16, 8, 3, bidirectional=True)
    assert count(RecurrentlyControlledRNN(16, 8)) == count(deep), "D = 2 H"
    at_200 = count(RecurrentlyControlledRNN(200, 200)) / count(torch.nn.LSTM(200, 200, 3, bidirectional=True))
    assert at_200 == pytest.approx(0.75, abs=0.005)
    names = {name for name, _ in RecurrentlyControlledRNN(3, 4, bidirectional=False).named_parameters()}
    torch_names = {name for name, _ in torch.nn.LSTM(3, 4).named_parameters()}
    networks = ("forget_controller", "output_controller", "listener")
    assert names == {f"{network}.{name}" for network in networks for name in torch_names}


def test_a_stack_neither_wraps_nor_reverses_it() -> None:
    torch.manual_seed(0)
    stack = RecurrentStack("rcrn", 3, [4, 5], bidirectional=True)
    assert stack.backward_layers is None and not stack.is_steppable
    assert [layer.input_size for layer in stack.layers] == [3, 8] and stack.output_size == 10
    x, lengths = torch.randn(5, 2, 3), torch.tensor([5, 2])
    lower, upper = stack.layers
    torch.testing.assert_close(stack(x, lengths).output, upper(lower(x, lengths).output, lengths).output)
    assert stack.summary_sizes == [8, 10]


def test_its_own_options() -> None:
    kind = recurrent_kind("rcrn")
    made = kind.make(kind.options(cell="gru", rcrn_output_gate="linear"), LayerSizes(3, [4]))
    assert (made.cell, made.output_gate, made.bidirectional) == ("gru", "linear", False)


def test_drop_connect_reaches_all_three_networks() -> None:
    torch.manual_seed(0)
    stack = RecurrentStack("rcrn", 3, [4], bidirectional=True, drop_connect=0.5)
    x = torch.randn(5, 2, 3)
    assert not stack(x).output.equal(stack(x).output)
    stack.eval()
    assert stack(x).output.equal(stack(x).output)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="unknown cell 'rnn'; choose from lstm, gru"):
        RecurrentlyControlledRNN(3, 4, "rnn")
    with pytest.raises(ValueError, match="unknown output gate 'tanh'; choose from sigmoid, linear"):
        RecurrentlyControlledRNN(3, 4, output_gate="tanh")
    with pytest.raises(ValueError, match="at least 1, not 0 and 4"):
        RecurrentlyControlledRNN(0, 4)
    both = RecurrentlyControlledRNN(3, 4)
    one = RecurrentlyControlledRNN(3, 4, bidirectional=False)
    with pytest.raises(ValueError, match="cannot go on from a state"):
        both(torch.randn(2, 1, 3), None, one.initial_state(1))
    with pytest.raises(TypeError, match="does not run step by step"):
        both.stepper(1)
