"""The multi-channel recurrence: every backend against the reference that reads like the paper."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_plugins import kernels
from fairseq_plugins.kernels.multi_channel.specification import CONNECTIONS, GATES
from fairseq_plugins.modules import HigherOrderRNN, MultiChannelRNN

from .results import results_of

BACKENDS = ("autograd", "eager", "cpp")


@pytest.mark.system
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_backends_agree_with_the_reference(
    backend: str, connection: str, cell: str, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(channels)
    for steps, hidden_size, lengths in ((1, 3, None), (6, 7, None), (7, 5, [7, 4, 1]), (3, 4, [0, 3, 2])):
        layer = MultiChannelRNN(5, hidden_size, channels, cell, connection, "orthogonal").double()
        x = torch.randn(steps, 3, 5, dtype=torch.float64)
        lengths = None if lengths is None else torch.tensor(lengths)
        expected = results_of("reference", layer, x, lengths, monkeypatch)
        actual = results_of(backend, layer, x, lengths, monkeypatch)
        for name, value in expected.items():
            torch.testing.assert_close(actual[name], value, rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.system
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("lags", [(1,), (1, 2), (1, 2, 3), (1, 5), (2, 4)], ids=str)
def test_higher_order_backends_agree_with_the_reference(
    backend: str, connection: str, cell: str, lags: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(len(lags))
    for steps, hidden_size, lengths in ((1, 3, None), (6, 7, None), (7, 5, [7, 4, 1]), (3, 4, [0, 3, 2])):
        layer = HigherOrderRNN(5, hidden_size, cell=cell, connection=connection, lags=lags).double()
        x = torch.randn(steps, 3, 5, dtype=torch.float64)
        lengths = None if lengths is None else torch.tensor(lengths)
        expected = results_of("reference", layer, x, lengths, monkeypatch)
        actual = results_of(backend, layer, x, lengths, monkeypatch)
        assert actual.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(actual[name], value, rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("backend", ["eager", "cpp"])
def test_a_long_lag_reaches_exactly_so_far(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The skip RNN's h(t - 1) and h(t - 256), by gradient; and a sequence that is shorter than that."""
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    torch.manual_seed(0)
    layer = HigherOrderRNN(2, 3, cell="rnn", connection="gate", lags=(1, 256)).double()
    with torch.no_grad():
        layer.weight_connection[0] = 0
    x = torch.randn(300, 1, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x).output[290].sum(), x)
    assert gradient.abs().sum((1, 2)).nonzero().flatten().tolist() == [290 - 256, 290]
    assert layer.initial_state(2).history.shape == (2, 256, 1, 3)
    with torch.no_grad():
        first = layer(x[:7])
        torch.testing.assert_close(layer(x[7:], None, first.state).output, layer(x).output[7:], rtol=0, atol=1e-12)


@pytest.mark.system
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
def test_gradcheck(backend: str, connection: str, cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    torch.manual_seed(0)
    layer = MultiChannelRNN(2, 3, 3, cell, connection, "orthogonal").double()
    names = [name for name, _ in layer.named_parameters()]
    lengths = torch.tensor([5, 2])

    def run(x: Tensor, h0: Tensor, c0: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        def call(x: Tensor) -> tuple[Tensor, ...]:
            result = layer(x, lengths, layer.initial_state(2, h0, c0), True)
            return result.output, result.state.history, result.state.cell_state, result.details["channel_attention"]

        wrapped = _Call(layer, call)
        return torch.func.functional_call(
            wrapped, dict(zip([f"layer.{n}" for n in names], parameters, strict=True)), (x,)
        )

    inputs = [torch.randn(5, 2, 2), torch.randn(2, 3), torch.randn(2, 3), *(p.detach() for p in layer.parameters())]
    inputs = [value.double().requires_grad_() for value in inputs]
    if cell != "lstm":
        inputs[2].requires_grad_(False)
    assert torch.autograd.gradcheck(run, inputs)


class _Call(torch.nn.Module):
    """Lets functional_call swap the parameters of a layer that is called in a particular way."""

    def __init__(self, layer: MultiChannelRNN, call) -> None:
        super().__init__()
        self.layer = layer
        self.call = call

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.call(x)


@pytest.mark.parametrize("backend", ["reference", *BACKENDS])
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
def test_one_channel_is_the_conventional_layer(
    backend: str, connection: str, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``gate`` as it is; with ``state`` where W_1 = I."""
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    torch.manual_seed(0)
    peer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[cell](4, 5).double()
    layer = MultiChannelRNN(4, 5, 1, cell, connection).double()
    with torch.no_grad():
        for name in ("weight_ih", "bias_ih", "bias_hh"):
            getattr(layer, name).copy_(getattr(peer, f"{name}_l0"))
        if connection == "gate":
            layer.weight_connection[0].copy_(peer.weight_hh_l0)
        else:
            layer.weight_hh.copy_(peer.weight_hh_l0)
            layer.weight_connection[0].copy_(torch.eye(5))
    x, h0, c0 = torch.randn(7, 3, 4).double(), torch.randn(3, 5).double(), torch.randn(3, 5).double()
    result = layer(x, None, layer.initial_state(3, h0, c0))
    expected, last = peer(x, (h0[None], c0[None]) if cell == "lstm" else h0[None])
    torch.testing.assert_close(result.output, expected, rtol=1e-10, atol=1e-10)
    if cell == "lstm":
        torch.testing.assert_close(result.state.cell_state[:, 0], last[1][0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_float32_stays_close_to_float64(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    torch.manual_seed(0)
    layer = MultiChannelRNN(31, 63, 3, connection_init="orthogonal")
    x = torch.randn(25, 7, 31)
    single = layer(x).output
    double = layer.double()(x.double()).output
    assert (single - double).abs().max() / double.abs().max() < 1e-5


def test_backends_take_inputs_that_are_not_contiguous(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = MultiChannelRNN(4, 5, 3, connection_init="orthogonal").double()
    x = torch.randn(3, 8, 4).double().transpose(0, 1)[::2]
    assert not x.is_contiguous()
    for backend in BACKENDS:
        expected = results_of("reference", layer, x, None, monkeypatch)
        for name, value in results_of(backend, layer, x, None, monkeypatch).items():
            torch.testing.assert_close(value, expected[name], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("backend", ["eager", "cpp"])
def test_runs_in_the_parameters_precision_under_autocast(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    torch.manual_seed(0)
    layer = MultiChannelRNN(4, 5, 3, connection_init="orthogonal")
    x = torch.randn(6, 2, 4)
    expected = layer(x).output
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = layer(x).output
    result.float().sum().backward()
    assert layer.weight_connection.grad.dtype == torch.float32
    torch.testing.assert_close(result.float(), expected, rtol=0, atol=2e-2)


@pytest.mark.parametrize("backend", ["eager", "cpp"])
def test_an_open_forget_gate_in_half_precision(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """c = 1 + t / 1024, of which bfloat16 can tell 1 / 128; and the gradient of c(0) is a sum over as many steps."""
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    layer = HigherOrderRNN(2, 3, connection="gate", lags=(1,))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        _, f, g, o = layer.bias_ih.chunk(4)
        f += 20
        o += 20
        # Half open, for a candidate of 1 / 512.
        g += 1 / 512
    found, expected = (
        _state_and_gradient(layer.to(dtype), torch.zeros(256, 2, 2, dtype=dtype))
        for dtype in (torch.bfloat16, torch.float64)
    )
    assert expected[0].min() > 1.24
    for value, exact in zip(found, expected, strict=True):
        assert value.dtype == torch.bfloat16
        torch.testing.assert_close(value.double(), exact, rtol=1e-2, atol=0)


def _state_and_gradient(layer: HigherOrderRNN, x: Tensor) -> tuple[Tensor, Tensor]:
    """The last cell state from a c(0) of 1, and the gradient of that c(0) for the sum of the outputs and of the last
    state."""
    ones = x.new_ones(x.size(1), layer.hidden_size).requires_grad_()
    result = layer(x, None, layer.initial_state(x.size(1), None, ones))
    objective = result.output.sum(0).sum() + result.state.cell_state.sum()
    return result.state.cell_state.detach(), torch.autograd.grad(objective, ones)[0]


@pytest.mark.parametrize("backend", ["eager", "cpp"])
def test_second_derivative_is_refused_not_wrong(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    layer = MultiChannelRNN(2, 3, 2).double()
    x = torch.randn(4, 1, 2).double().requires_grad_()
    with pytest.raises(RuntimeError, match="no second derivatives: set FAIRSEQ_PLUGINS_BACKEND=autograd"):
        (gradient,) = torch.autograd.grad(layer(x).output.sum(), x, create_graph=True)
        gradient.sum().backward()


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_backward_twice_through_one_graph(backend: str, cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C++ backward pass overwrites what it has saved; a retained graph must not notice."""
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    layer = MultiChannelRNN(2, 3, 3, cell).double()
    output = layer(torch.randn(4, 5, 2).double(), torch.tensor([4, 3, 3, 1, 0])).output
    inputs = list(layer.parameters())
    gradients = [torch.autograd.grad(output.sin().sum(), inputs, retain_graph=True) for _ in range(2)]
    for first, second in zip(*gradients, strict=True):
        assert first.equal(second)
