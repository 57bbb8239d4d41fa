"""How DilatedRNN's networks start, and the dilated CNN."""

from __future__ import annotations

import math

import pytest
import torch

from fairseq_plugins.modules import RecurrentStack
from fairseq_plugins.modules.dilated_convolution import DilatedCNN
from fairseq_plugins.modules.initialization import glorot_, standard_normal_
from fairseq_plugins.modules.recurrent.higher_order import HigherOrderOptions, HigherOrderRNN
from fairseq_plugins.modules.recurrent.multi_channel import MultiChannelRNN


def largest(*parts: torch.Tensor) -> float:
    return max(float(part.abs().max()) for part in parts)


def test_glorot_over_the_joint_kernels() -> None:
    torch.manual_seed(0)
    inputs, size = 30, 40
    lstm, gru, rnn = (torch.nn.LSTM(inputs, size), torch.nn.GRU(inputs, size), torch.nn.RNN(inputs, size))
    for network in lstm, gru, rnn:
        glorot_(network)
    bound = {gates: math.sqrt(6 / (inputs + size + gates * size)) for gates in (1, 2, 4)}
    assert largest(lstm.weight_ih_l0, lstm.weight_hh_l0) == pytest.approx(bound[4], rel=0.01)
    assert largest(rnn.weight_ih_l0, rnn.weight_hh_l0) == pytest.approx(bound[1], rel=0.01)
    assert largest(gru.weight_ih_l0[: 2 * size], gru.weight_hh_l0[: 2 * size]) == pytest.approx(bound[2], rel=0.01)
    assert largest(gru.weight_ih_l0[2 * size :], gru.weight_hh_l0[2 * size :]) == pytest.approx(bound[1], rel=0.01)
    assert lstm.bias_ih_l0.view(4, size).mean(dim=1).tolist() == [0, 1, 0, 0], "the forget gate"
    assert gru.bias_ih_l0.view(3, size).mean(dim=1).tolist() == [1, 1, 0]
    assert not rnn.bias_ih_l0.any() and not lstm.bias_hh_l0.any() and not gru.bias_hh_l0.any()


def test_glorot_of_the_skip_rnn_and_normal_of_all() -> None:
    torch.manual_seed(0)
    options = HigherOrderOptions(cell="rnn", connection="gate", lags="1,4")
    stack = RecurrentStack("ho_rnn", 10, [50], options=options)
    glorot_(stack)
    [layer] = stack.layers
    bound = math.sqrt(6 / (10 + 2 * 50 + 50))
    assert largest(layer.weight_ih, layer.weight_connection) == pytest.approx(bound, rel=0.01)
    assert not layer.bias_ih.any()
    standard_normal_(stack)
    assert float(layer.weight_connection.std()) == pytest.approx(1, abs=0.05)


def test_glorot_of_gates_that_read_given_lags() -> None:
    """TensorFlow's kernels: all gates of the LSTM in one, two of the GRU's and its candidate in another."""
    torch.manual_seed(0)
    inputs, size = 10, 50
    lstm, gru = (HigherOrderRNN(inputs, size, cell=cell, connection="gate", lags=(1, 4)) for cell in ("lstm", "gru"))
    for layer in lstm, gru:
        glorot_(layer)
        assert not layer.bias_hh.any()
    bound = {gates: math.sqrt(6 / (inputs + 2 * size + gates * size)) for gates in (1, 2, 4)}
    assert largest(lstm.weight_ih, lstm.weight_connection) == pytest.approx(bound[4], rel=0.01)
    assert largest(gru.weight_ih[: 2 * size], gru.weight_connection[:, : 2 * size]) == pytest.approx(bound[2], rel=0.01)
    assert largest(gru.weight_ih[2 * size :], gru.weight_connection[:, 2 * size :]) == pytest.approx(bound[1], rel=0.01)
    assert lstm.bias_ih.view(4, size).mean(dim=1).tolist() == [0, 1, 0, 0]
    assert gru.bias_ih.view(3, size).mean(dim=1).tolist() == [1, 1, 0]


def test_glorot_of_what_tensorflow_has_not() -> None:
    with pytest.raises(ValueError, match="TensorFlow 1 has no such layer"):
        glorot_(MultiChannelRNN(4, 4))


@pytest.mark.parametrize("layers", [1, 3])
def test_the_dilated_cnn_sees_so_many_steps(layers: int) -> None:
    torch.manual_seed(0)
    network = DilatedCNN(1, 4, layers).double()
    with torch.no_grad():
        for layer in network.layers:
            layer.weight.abs_()  # so that no ReLU is closed
    x = torch.rand(12, 1, 1, dtype=torch.double, requires_grad=True)
    network(x)[-1].sum().backward()
    seen = x.grad.flatten() != 0
    assert seen.tolist() == [False] * (12 - 2**layers) + [True] * 2**layers
    with pytest.raises(ValueError, match="at least 1"):
        DilatedCNN(1, 4, 0)
