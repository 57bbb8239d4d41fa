"""Conventional layers on our kernel: as torch's own over ragged batches, from any state, gradients too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from fairseq_plugins import kernels
from fairseq_plugins.kernels import conventional_layers
from fairseq_plugins.modules import RECURRENT_KINDS, LayerSizes
from fairseq_plugins.modules.recurrent import torch_layers
from tests.commands import run_command

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


def alone(rnn: nn.RNNBase, x: Tensor, length: int, hidden: Tensor, cell_state: Tensor) -> tuple[Tensor, ...]:
    """One row (T, D) by torch's own layer: its output, zero at padding, and its last h and c."""
    if length == 0:
        return x.new_zeros(len(x), rnn.hidden_size), hidden, cell_state
    is_lstm = isinstance(rnn, nn.LSTM)
    state = (hidden.unsqueeze(0), cell_state.unsqueeze(0)) if is_lstm else hidden.unsqueeze(0)
    output, last = rnn(x[:length], state)
    hidden, cell_state = (each.squeeze(0) for each in last) if is_lstm else (last.squeeze(0), cell_state)
    return torch.cat([output, x.new_zeros(len(x) - length, rnn.hidden_size)]), hidden, cell_state


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel runs whatever the sizes are."""
    monkeypatch.setattr(conventional_layers, "is_faster", lambda *_: True)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("is_ragged", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_the_kernel_equals_torch_gradients_too(cell: str, is_ragged: bool) -> None:
    torch.manual_seed(0)
    rnn = CELLS[cell](3, 5).double()
    x = torch.randn(6, 4, 3, dtype=torch.float64, requires_grad=True)
    hidden = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    cell_state = torch.randn(4, 5 if cell == "lstm" else 0, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([6, 0, 1, 4]) if is_ragged else None
    assert kernels.conventional_rnn(*rnn.parameters(), cell, x, lengths, hidden, cell_state) is not None

    ours = torch_layers.run(rnn, x, lengths, hidden, cell_state)
    rows = [alone(rnn, x[:, b], [6, 0, 1, 4][b] if is_ragged else 6, hidden[b], cell_state[b]) for b in range(4)]
    expected = [torch.stack(parts, dim) for parts, dim in zip(zip(*rows, strict=True), (1, 0, 0), strict=True)]
    torch.testing.assert_close(list(ours), expected, **TOLERANCE)
    inputs = [x, hidden, *([cell_state] if cell == "lstm" else []), *rnn.parameters()]
    weights = [torch.randn_like(each) for each in expected]
    gradients = [
        torch.autograd.grad(sum((each * weight).sum() for each, weight in zip(results, weights, strict=True)), inputs)
        for results in (ours, expected)
    ]
    torch.testing.assert_close(*gradients, **TOLERANCE)


@pytest.mark.parametrize("cell", CELLS)
def test_the_kernel_is_chosen_where_it_is_faster(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the sizes, the number of threads and whether there is a gradient; and never where another one is named."""

    def runs(steps: int, rows: int, hidden_size: int, dtype: torch.dtype = torch.float32) -> bool:
        rnn = CELLS[cell](2, hidden_size).to(dtype)
        x, zeros = torch.zeros(steps, rows, 2, dtype=dtype), torch.zeros(rows, hidden_size, dtype=dtype)
        states = (zeros, zeros if cell == "lstm" else zeros[:, :0])
        return kernels.conventional_rnn(*rnn.parameters(), cell, x, None, *states) is not None

    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert runs(64, 128, 8)
    assert runs(4, 2, 256) == (cell == "gru")
    assert not runs(64, 128, 8, torch.bfloat16)
    with torch.no_grad():
        assert runs(64, 128, 8) == (cell == "gru")
        assert not runs(4, 2, 256)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert runs(64, 128, 8) == (cell != "lstm")
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "autograd")
    assert not runs(64, 128, 8)


@pytest.mark.system
def test_another_default_device_changes_nothing() -> None:
    """Nor where it was the default when the package was imported."""
    script = (
        "import torch; torch.set_default_device('meta')\n"
        "from fairseq_plugins.modules import ConventionalRNN\n"
        "layer = ConventionalRNN(3, 8, 'gru').to_empty(device='cpu')\n"
        "result = layer(torch.zeros(4, 2, 3, device='cpu'), torch.tensor([4, 2], device='cpu'))\n"
        "assert result.output.is_cpu\n"
    )
    run_command(["python", "-c", script])


@pytest.mark.parametrize("kind", sorted(RECURRENT_KINDS))
def test_steps_from_the_beginning_under_autocast(kind: str) -> None:
    """The first step's state is of zeros, which no operation in half precision has made."""
    torch.manual_seed(0)
    network = RECURRENT_KINDS[kind].make(RECURRENT_KINDS[kind].options(), LayerSizes(3, (5,)))
    x = torch.randn(4, 2, 3)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        state, step, outputs = network.initial_state(2), network.stepper(2), []
        for each in x:
            output, state = step(each, state)
            outputs.append(output.float())
    torch.testing.assert_close(torch.stack(outputs), network(x).output, rtol=0.1, atol=0.05)


@pytest.mark.parametrize("backend", [None, "autograd"])
@pytest.mark.parametrize("kind", sorted(RECURRENT_KINDS))
def test_a_batch_without_rows(kind: str, backend: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend:
        monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    network = RECURRENT_KINDS[kind].make(RECURRENT_KINDS[kind].options(), LayerSizes(3, (5,)))
    x = torch.randn(4, 0, 3, requires_grad=True)
    output = network(x, torch.zeros(0, dtype=torch.long)).output
    assert output.shape == (4, 0, network.output_size)
    output.sum().backward()
    assert x.grad.shape == x.shape
    assert all(not parameter.grad.any() for parameter in network.parameters() if parameter.grad is not None)


@pytest.mark.parametrize("kind", sorted(name for name, kind in RECURRENT_KINDS.items() if not kind.handles_depth))
def test_torch_gets_states_that_cudnn_takes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN refuses states that are not contiguous, as views of a state with several parts are."""
    monkeypatch.setattr(kernels, "conventional_rnn", lambda *_: None)
    given: list[Tensor] = []

    def recorded(run: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def recording(x: Tensor, state: Tensor | tuple[Tensor, Tensor], *rest: object) -> Tensor:
            given.extend(state if isinstance(state, tuple) else [state])
            return run(x, state, *rest)

        return recording

    monkeypatch.setattr(torch_layers, "_RUNS", {cell: recorded(run) for cell, run in torch_layers._RUNS.items()})
    own = RECURRENT_KINDS[kind]
    network = own.make(own.options(), LayerSizes(3, (5,)))
    first = network(torch.randn(4, 2, 3))
    network(torch.randn(4, 2, 3), None, first.state)
    assert all(state.is_contiguous() for state in given)
