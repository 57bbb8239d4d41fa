"""The multi-channel recurrence: Eq. 1, and every backend against the reference that reads like the paper."""

from __future__ import annotations

import itertools
import os

import pytest
import torch
from torch import Tensor

from fairseq_plugins import kernels
from fairseq_plugins.errors import InputError
from fairseq_plugins.kernels import cpp
from fairseq_plugins.kernels.interface import CONNECTIONS, GATES, channel_slots, in_degree
from fairseq_plugins.modules import HigherOrderRNN, MultiChannelRNN
from fairseq_plugins.modules.connected_rnn import ConnectedRNN
from fairseq_plugins.modules.conventional_rnn import ConventionalRNN

BACKENDS = ("autograd", "eager", "cpp")


def test_in_degree_of_the_printed_equation() -> None:
    n = 4  # block size: three channels
    assert [in_degree(t, k, n - 1) for t, k in ((4, 2), (8, 2), (12, 2), (2, 1))] == [2, 3, 1, 1]
    for t in (4, 7, 10):
        assert [in_degree(t, k, n - 1) for k in (1, 2, 3)] == [3, 2, 1]


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
def test_in_degree_goes_round(channels: int) -> None:
    for t, k in itertools.product(range(1, 30), range(1, channels + 1)):
        m = in_degree(t, k, channels)
        assert 1 <= m <= channels
        assert in_degree(t + 1, k, channels) == m % channels + 1
    assert {in_degree(9, k, channels) for k in range(1, channels + 1)} == set(range(1, channels + 1))


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_path_length_of_section_5_2(channels: int) -> None:
    """From i to i + l: ceil(l / C) steps in the channel where i begins a block, at most one more in any other."""
    for length in range(1, 25):
        best = -(-length // channels)
        for start in range(1, channels + 1):
            steps = {k: _shortest_path(start, start + length, k, channels) for k in range(1, channels + 1)}
            assert min(steps.values()) == best
            assert max(steps.values()) <= best + 1
            begins_block = next(k for k in steps if in_degree(start, k, channels) == channels)
            assert steps[begins_block] == best


def _shortest_path(start: int, end: int, channel: int, channels: int) -> int:
    distance = {start: 0}
    for t in range(start + 1, end + 1):
        m = in_degree(t, channel, channels)
        distance[t] = 1 + min((distance[t - j] for j in range(1, m + 1) if t - j in distance), default=10**9)
    return distance[end]


def test_slots_follow_the_channels() -> None:
    slots = channel_slots(torch.tensor([0, 5]), 6, 3)
    assert slots.shape == (6, 2, 3)
    for t, b, k in itertools.product(range(6), range(2), range(3)):
        time = (0, 5)[b] + t + 1
        assert slots[t, b, k] == in_degree(time + 1, k + 1, 3) - 1


def _results(
    backend: str, layer: ConnectedRNN, x: Tensor, lengths: Tensor | None, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Tensor]:
    """Outputs of two chained calls (the second goes on from a state with different times) and all gradients."""
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    assert backend != "cpp" or cpp.compiled() is not None, "eager would be compared with itself"
    generator = torch.Generator().manual_seed(5)
    batch_size = x.size(1)
    h0, c0 = (
        torch.randn(batch_size, layer.hidden_size, generator=generator, dtype=torch.float64).to(x).requires_grad_()
        for _ in range(2)
    )
    x = x.clone().requires_grad_()
    first = layer(x, lengths, layer.initial_state(batch_size, h0, c0), True)
    second = layer(x.flip(0), lengths, first.state, True)
    outputs = {}
    for name, result in ("first", first), ("second", second):
        outputs[f"{name} output"] = result.output
        if result.channel_attention is not None:
            outputs[f"{name} attention"] = result.channel_attention
        outputs |= {f"{name} {field}": value for field, value in zip(result.state._fields, result.state, strict=True)}
    objective = sum(
        (torch.randn(value.shape, generator=generator, dtype=torch.float64).to(x) * value).sum()
        for value in outputs.values()
        if value.is_floating_point()
    )
    inputs = {"x": x, "h0": h0, **({"c0": c0} if layer.has_memory else {}), **dict(layer.named_parameters())}
    gradients = torch.autograd.grad(objective, list(inputs.values()))
    return outputs | {f"gradient of {name}": g for name, g in zip(inputs, gradients, strict=True)}


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
        expected = _results("reference", layer, x, lengths, monkeypatch)
        actual = _results(backend, layer, x, lengths, monkeypatch)
        for name, value in expected.items():
            torch.testing.assert_close(actual[name], value, rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_higher_order_backends_agree_with_the_reference(
    backend: str, connection: str, cell: str, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(order)
    for steps, hidden_size, lengths in ((1, 3, None), (6, 7, None), (7, 5, [7, 4, 1]), (3, 4, [0, 3, 2])):
        layer = HigherOrderRNN(5, hidden_size, order, cell, connection).double()
        x = torch.randn(steps, 3, 5, dtype=torch.float64)
        lengths = None if lengths is None else torch.tensor(lengths)
        expected = _results("reference", layer, x, lengths, monkeypatch)
        actual = _results(backend, layer, x, lengths, monkeypatch)
        assert actual.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(actual[name], value, rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


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
            return result.output, result.state.history, result.state.memory, result.channel_attention

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
        torch.testing.assert_close(result.state.memory[:, 0], last[1][0], rtol=1e-10, atol=1e-10)


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
        expected = _results("reference", layer, x, None, monkeypatch)
        for name, value in _results(backend, layer, x, None, monkeypatch).items():
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
def test_second_derivative_is_refused_not_wrong(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    layer = MultiChannelRNN(2, 3, 2).double()
    x = torch.randn(4, 1, 2).double().requires_grad_()
    with pytest.raises(RuntimeError, match="once_differentiable|no second derivatives"):
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


def test_unknown_backend_names_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "quick")
    with pytest.raises(
        InputError, match="FAIRSEQ_PLUGINS_BACKEND=quick: no such backend; choose from reference, autograd"
    ):
        MultiChannelRNN(2, 3)(torch.randn(1, 1, 2))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 7, 17])
@pytest.mark.parametrize("cell", GATES)
def test_cpp_splits_the_batch_over_threads(
    cell: str, batch_size: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    before = torch.get_num_threads()
    layer = MultiChannelRNN(5, 63, 3, cell, connection_init="orthogonal").double()
    x = torch.randn(6, batch_size, 5, dtype=torch.float64)
    lengths = torch.randint(0, 7, (batch_size,))
    lengths[0] = 6
    try:
        torch.set_num_threads(threads)
        expected = _results("eager", layer, x, lengths, monkeypatch)
        for name, value in _results("cpp", layer, x, lengths, monkeypatch).items():
            torch.testing.assert_close(value, expected[name], rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("cell", GATES)
def test_cpp_in_single_precision(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = MultiChannelRNN(31, 63, 3, cell, connection_init="orthogonal")
    x, lengths = torch.randn(25, 7, 31), torch.tensor([25, 25, 20, 13, 7, 2, 1])
    single = _results("cpp", layer, x, lengths, monkeypatch)
    double = _results("reference", layer.double(), x.double(), lengths, monkeypatch)
    for name, value in double.items():
        if value.numel():
            tolerance = 1e-4 if name.startswith("gradient") else 1e-5
            assert (single[name] - value).abs().max() <= tolerance * value.abs().max(), name


def test_cpp_leaves_no_memory_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cpp")
    layer = MultiChannelRNN(16, 64, 3)
    x = torch.randn(1, 16)
    state = layer.initial_state(1)
    with torch.no_grad():
        for step in range(1100):
            if step == 100:
                before = _resident_memory()
            _, state = layer.step(x, state)
    for _ in range(50):
        layer(torch.randn(20, 8, 16)).output.sum().backward()
    assert _resident_memory() - before < 30e6


def _resident_memory() -> int:
    """In bytes."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# Activations of more than 32 MiB, which the C++ kernels hold for the next call.
LARGE = {"hidden": 256, "batch": 32, "steps": 90}


@pytest.mark.parametrize("cell", GATES)
def test_cpp_reads_nothing_of_the_call_before(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cpp")
    torch.manual_seed(0)
    layer = MultiChannelRNN(8, LARGE["hidden"], 3 * GATES["lstm"] // GATES[cell], cell)
    x = torch.randn(LARGE["steps"], LARGE["batch"], 8)

    def gradients(x: Tensor) -> list[Tensor]:
        layer.zero_grad()
        layer(x, torch.full((LARGE["batch"],), LARGE["steps"] - 1)).output.sum().backward()
        return [parameter.grad.clone() for parameter in layer.parameters()]

    before = gradients(x)
    assert gradients(torch.full_like(x, torch.nan))[0].isnan().any()
    assert all(map(torch.equal, before, gradients(x)))


def test_cpp_holds_no_more_than_it_needed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cpp")
    layer = MultiChannelRNN(8, LARGE["hidden"], 3)

    def train(steps: int) -> int:
        layer(torch.randn(steps, LARGE["batch"], 8)).output.sum().backward()
        return _resident_memory()

    largest = train(2 * LARGE["steps"])
    for steps in (90, 130, 170, 110, 150, 180) * 2:
        after = train(steps)
    # malloc's own heap moves by 200 MB; blocks that were never taken again nor freed would make 600.
    assert after - largest < 350e6


def test_cpp_keeps_nothing_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parameters ask for gradients also under no_grad."""
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cpp")
    compiled, kept = cpp.compiled(), []

    class Spy:
        @staticmethod
        def forward(*arguments):
            results = compiled.forward(*arguments)
            kept.append(len(results[-1]))
            return results

    monkeypatch.setattr(cpp, "compiled", lambda: Spy)
    layer = MultiChannelRNN(4, 5, 3)
    layer(torch.randn(6, 3, 4))
    with torch.no_grad():
        layer(torch.randn(6, 3, 4))
    assert kept[0] > 0
    assert kept[1] == 0


@pytest.mark.parametrize("steps, batch_size", [(0, 2), (3, 0)])
def test_nothing_to_do(steps: int, batch_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cpp")
    layer = MultiChannelRNN(4, 5, 3)
    state = layer.initial_state(batch_size, torch.ones(batch_size, 5))
    result = layer(torch.randn(steps, batch_size, 4), None, state, True)
    assert result.output.shape == (steps, batch_size, 5)
    assert result.state.history.equal(state.history) or steps


def test_half_precision_and_training_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cpp")
    layer = MultiChannelRNN(4, 5, 3)
    x = torch.randn(6, 3, 4)
    expected = layer(x)
    with torch.no_grad():
        for name, value in zip(expected._fields[:1], layer(x)[:1], strict=True):
            torch.testing.assert_close(value, getattr(expected, name))
        torch.testing.assert_close(layer(x).state.memory, expected.state.memory)
    assert layer.bfloat16()(x.bfloat16()).output.dtype == torch.bfloat16


@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
def test_cpp_gives_the_same_where_nothing_is_kept(cell: str, connection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cpp")
    torch.manual_seed(0)
    layer = MultiChannelRNN(3, 5, 3, cell, connection, "orthogonal").double()
    x, lengths = torch.randn(9, 6, 3).double(), torch.tensor([9, 7, 5, 2, 1, 0])
    state = layer(x.flip(0)).state
    expected = layer(x, lengths, state, True)
    with torch.no_grad():
        result = layer(x, lengths, state, True)
    for value, other in zip(
        (result.output, result.channel_attention, *result.state),
        (expected.output, expected.channel_attention, *expected.state),
        strict=True,
    ):
        assert value.equal(other.detach())


def _by_steps(layer: torch.nn.Module, x: Tensor, h0: Tensor, c0: Tensor) -> Tensor:
    """(T, B, H), with every step's input made from the output before it, as with input feeding."""
    state = layer.initial_state(x.size(1), h0, c0)
    step = layer.stepper(x.size(1))
    output, outputs = h0, []
    for x_t in x.unbind(0):
        output, state = step(torch.cat([x_t, output], dim=-1), state)
        outputs.append(output)
    return torch.stack([*outputs, sum(value.sum() for value in state if value.is_floating_point()).expand_as(output)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("channels", [1, 3, 0], ids=["1", "3", "HO-RNN"])
def test_steps_of_cpp_agree_with_the_reference(
    channels: int, cell: str, connection: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients of the weights are summed over the steps inside the kernel."""
    torch.manual_seed(0)
    before = torch.get_num_threads()
    if channels == 0:
        layer = HigherOrderRNN(4 + 5, 5, 3, cell, connection).double()
    else:
        layer = MultiChannelRNN(4 + 5, 5, channels, cell, connection, "orthogonal").double()
    x, h0, c0 = (torch.randn(*size, 5).double()[..., :width] for size, width in (((6, 9), 4), ((9,), 5), ((9,), 5)))
    inputs = [value.requires_grad_() for value in ((h0, c0) if cell == "lstm" else (h0,))] + list(layer.parameters())
    results = {}
    try:
        torch.set_num_threads(threads)
        for backend in ("reference", "cpp"):
            monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
            outputs = _by_steps(layer, x, h0, c0)
            objective = (outputs * torch.arange(outputs.numel()).view_as(outputs).cos()).sum()
            gradients = [torch.autograd.grad(objective, inputs, retain_graph=True) for _ in range(2)]
            assert all(first.equal(second) for first, second in zip(*gradients, strict=True)), "a retained graph"
            (of_state,) = torch.autograd.grad(objective, [h0], retain_graph=True)
            assert of_state.equal(gradients[0][0]), "without the weights"
            with torch.no_grad():
                assert _by_steps(layer, x, h0, c0).equal(outputs)
            results[backend] = (outputs, *gradients[0])
    finally:
        torch.set_num_threads(before)
    for value, expected in zip(results["cpp"], results["reference"], strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cell", GATES)
def test_conventional_steps_agree_with_torch(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = ConventionalRNN(4 + 5, 5, cell).double()
    x, h0, c0 = torch.randn(6, 9, 4).double(), torch.randn(9, 5).double(), torch.randn(9, 5).double()
    inputs = [value.requires_grad_() for value in ((h0, c0) if cell == "lstm" else (h0,))] + list(layer.parameters())
    results = []
    for backend in ("cpp", "eager"):
        monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
        outputs = _by_steps(layer, x, h0, c0)
        results.append((outputs, *torch.autograd.grad(outputs.cos().sum(), inputs)))
    for value, expected in zip(*results, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)


def test_steps_notice_weights_that_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cpp")
    layer = MultiChannelRNN(4, 5, 3)
    output, _ = layer.step(torch.randn(2, 4), layer.initial_state(2))
    with torch.no_grad():
        layer.weight_connection.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


@pytest.mark.skipif(not cpp.has_bfloat16(), reason="this CPU does not multiply in bfloat16")
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
def test_cpp_in_bfloat16(cell: str, connection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under autocast, and with the parameters themselves in bfloat16."""
    torch.manual_seed(0)
    layer = MultiChannelRNN(256, 256, 3, cell, connection).bfloat16().float()
    x = torch.randn(25, 7, 256).bfloat16().float()
    lengths = torch.tensor([25, 25, 20, 13, 7, 2, 1])
    expected = _results("reference", layer, x, lengths, monkeypatch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = _results("cpp", layer, x, lengths, monkeypatch)
        assert layer(x).output.dtype == torch.bfloat16
    results = {
        "autocast": under_autocast,
        "bfloat16": _results("cpp", layer.bfloat16(), x.bfloat16(), lengths, monkeypatch),
    }
    for how, values in results.items():
        for name, value in expected.items():
            if value.numel():
                error = (values[name].float() - value).abs().max() / value.abs().max()
                # Only differences between channels move Eq. 5; at first they are hardly larger than bfloat16 tells.
                tolerance = 0.15 if name in ("gradient of attention_v", "gradient of attention_r") else 2e-2
                assert error <= tolerance, f"{how}: {name}: {error}"
