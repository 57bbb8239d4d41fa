"""DilatedRNN against Eq. 1, 3 and 4, and against torch where the dilation is 1."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fairseq_plugins.modules import DilatedRNN, DilatedRNNStack, LayerSizes
from fairseq_plugins.modules.recurrent.registry import recurrent_kind

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
TORCH = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
CELLS = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "rnn": nn.RNNCell}


def reference(layer: DilatedRNN, x: Tensor, lengths: Tensor) -> Tensor:
    """c(t) = f(x(t), c(t - s)) (Eq. 1) and the fusion of Eq. 4, a sentence and a step at a time."""
    cell = CELLS[layer.cell](layer.input_size, layer.hidden_size).to(x.dtype)
    weights = {name.removesuffix("_l0"): parameter for name, parameter in layer.rnn.named_parameters()}
    zero = x.new_zeros(1, layer.hidden_size)
    nothing = x.new_zeros(layer.hidden_size)
    rows = []
    for b, length in enumerate(lengths.tolist()):
        states: list[tuple[Tensor, ...]] = []
        row = []
        for t in range(length):
            earlier = states[t - layer.dilation] if t >= layer.dilation else (zero, zero)
            state = torch.func.functional_call(
                cell, weights, (x[t, b : b + 1], earlier if layer.cell == "lstm" else earlier[0])
            )
            states.append(state if layer.cell == "lstm" else (state, zero))
            last = [states[t - i][0][0] if t >= i else nothing for i in reversed(range(layer.fusion_width))]
            if layer.fusion_width == 1:
                row.append(last[0])
            elif layer.fusion == "concat":
                row.append(torch.cat(last))
            else:
                row.append(sum(weight * h for weight, h in zip(layer.fusion_weight, last, strict=True)))
        row += [x.new_zeros(layer.output_size)] * (len(x) - length)
        rows.append(torch.stack(row))
    return torch.stack(rows, dim=1)


@pytest.mark.parametrize("fusion_width, fusion", [(1, "convolution"), (3, "convolution"), (2, "concat")])
@pytest.mark.parametrize("dilation", [1, 2, 3, 9])
@pytest.mark.parametrize("cell", TORCH)
def test_equals_the_reference_gradients_too(cell: str, dilation: int, fusion_width: int, fusion: str) -> None:
    torch.manual_seed(0)
    layer = DilatedRNN(3, 4, dilation, cell, fusion_width, fusion).double()
    if layer.fusion_weight is not None:
        nn.init.normal_(layer.fusion_weight)
    x = torch.randn(7, 4, 3, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([7, 0, 1, 5])
    results = [layer(x, lengths).output, reference(layer, x, lengths)]
    torch.testing.assert_close(*results, **TOLERANCE)
    gradient = torch.randn_like(results[0])
    inputs = [x, *layer.parameters()]
    torch.testing.assert_close(*(torch.autograd.grad(each, inputs, gradient) for each in results), **TOLERANCE)
    torch.testing.assert_close(layer(x).output, reference(layer, x, torch.full((4,), 7)), **TOLERANCE)


@pytest.mark.parametrize("cell", TORCH)
def test_without_dilation_it_is_the_layer_of_torch(cell: str) -> None:
    torch.manual_seed(0)
    layer = DilatedRNN(3, 4, 1, cell)
    peer = TORCH[cell](3, 4)
    peer.load_state_dict(layer.rnn.state_dict())
    x = torch.randn(6, 2, 3)
    torch.testing.assert_close(layer(x).output, peer(x)[0])


def test_an_input_with_the_batch_first_in_memory() -> None:
    """As a decoder hands it over; with no padding to add, nothing has copied it."""
    layer, x = DilatedRNN(3, 4, 2), torch.randn(2, 6, 3)
    assert layer(x.transpose(0, 1)).output.equal(layer(x.transpose(0, 1).contiguous()).output)


@pytest.mark.parametrize("dilation", [1, 2, 3, 5])
def test_an_output_depends_on_every_dth_input_alone(dilation: int) -> None:
    torch.manual_seed(0)
    layer = DilatedRNN(3, 4, dilation)
    x = torch.randn(11, 1, 3, requires_grad=True)
    for t in (0, 4, 10):
        [gradient] = torch.autograd.grad(layer(x).output[t].sum(), x)
        read = {i for i in range(11) if gradient[i].any()}
        assert read == set(range(t, -1, -dilation))


def test_a_fusion_reaches_what_lies_between() -> None:
    """Without it, nothing connects even and odd times (Figure 2, right)."""
    torch.manual_seed(0)
    stack = DilatedRNNStack(3, [4, 4], [2, 4], "rnn")
    x = torch.randn(9, 1, 3, requires_grad=True)
    [gradient] = torch.autograd.grad(stack(x).output[8].sum(), x)
    assert all(gradient[t].any() for t in range(9))
    assert [layer.fusion_width for layer in stack.layers] == [1, 2]
    assert stack.layers[-1].fusion_weight.tolist() == [0.5, 0.5]
    plain = DilatedRNNStack(3, [4, 4], [1, 2], "rnn")
    assert [layer.fusion_weight for layer in plain.layers] == [None, None]


def test_widths_and_dilations_of_the_authors_example() -> None:
    """GRU of 20, 30, 40 and 50 with dilations 4, 8, 16 and 32."""
    stack = DilatedRNNStack(1, [20, 30, 40, 50], [4, 8, 16, 32], "gru", "concat")
    result = stack(torch.randn(70, 2, 1), torch.tensor([70, 3]))
    assert result.output.shape == (70, 2, 200)
    assert not result.output[3:, 1].any()


def test_the_kind_takes_its_dilations_from_the_index_of_the_layer() -> None:
    kind = recurrent_kind("dilated_rnn")
    options = kind.options(dilation_base=3, first_dilation=2, cell="gru")
    made = [kind.make(options, LayerSizes(4, [4] * 3, layer)) for layer in range(3)]
    assert [layer.dilation for layer in made] == [2, 6, 18]
    assert [layer.fusion_width for layer in made] == [1, 1, 2]


def test_dilations_cost_no_parameters() -> None:
    """Table 1: 9 layers of 20, about 28 thousand with LSTMs, whatever the dilations."""
    stack = DilatedRNNStack(1, [20] * 9, [2**i for i in range(9)])
    peer = nn.LSTM(1, 20, 9)
    assert sum(p.numel() for p in stack.parameters()) == sum(p.numel() for p in peer.parameters())


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="at least 1, not 3, 4, 0, 1"):
        DilatedRNN(3, 4, 0)
    with pytest.raises(ValueError, match="unknown cell 'sru'; choose from lstm, gru, rnn"):
        DilatedRNN(3, 4, 2, "sru")
    with pytest.raises(ValueError, match="unknown fusion 'sum'; choose from convolution, concat"):
        DilatedRNN(3, 4, 2, fusion="sum")
    with pytest.raises(ValueError, match="a dilation for each layer, not 1 for 2 layers"):
        DilatedRNNStack(3, [4, 4], [1])
