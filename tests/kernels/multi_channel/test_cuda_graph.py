"""The backend for GPUs: on a GPU where there is one, and under Triton's interpreter in a process of its own."""

from __future__ import annotations

from itertools import product
from threading import Thread

import pytest
import torch

from fairseq_plugins import kernels
from fairseq_plugins.kernels.multi_channel.specification import CONNECTIONS, GATES
from fairseq_plugins.modules import HigherOrderRNN, MultiChannelRNN
from tests.commands import run_command
from tests.kernels.interpreter import IS_INTERPRETED, run_under_interpreter

from .results import by_steps, results_of

DEVICE = "cpu" if IS_INTERPRETED else "cuda"

on_device = pytest.mark.skipif(
    not IS_INTERPRETED and not torch.cuda.is_available(), reason="there is no GPU; interpreted in another test"
)


def with_every_cell(shapes: list[tuple]) -> list[tuple]:
    """Each shape with every cell and connection; the interpreter, which is slow, has them with the first shape alone,
    and a third of them with each of the others."""
    return [
        (*shape, cell, connection)
        for number, shape in enumerate(shapes)
        for index, (cell, connection) in enumerate(product(GATES, CONNECTIONS))
        if not IS_INTERPRETED or number == 0 or index % 3 == number % 3
    ]


@pytest.mark.slow
def test_under_the_interpreter() -> None:
    """All tests of this file that need a device."""
    run_under_interpreter(__file__)


@pytest.fixture(autouse=True)
def _small_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few steps to a graph that short sequences need several, of which the last is not full."""
    if not IS_INTERPRETED and not torch.cuda.is_available():
        return
    from fairseq_plugins.kernels.multi_channel import cuda_graph

    monkeypatch.setattr(cuda_graph, "STEPS", 3)
    monkeypatch.setattr(cuda_graph, "SMALLEST_BATCH", 4)


@on_device
@pytest.mark.parametrize(
    "channels, steps, lengths, cell, connection",
    with_every_cell([(3, 5, [5, 3, 1]), (1, 4, None), (2, 3, [3, 1, 0]), (4, 2, None), (3, 1, None)]),
)
def test_agrees_with_the_reference(
    channels: int, steps: int, lengths: list[int] | None, cell: str, connection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(channels)
    layer = MultiChannelRNN(5, 7, channels, cell, connection, "orthogonal").double()
    x = torch.randn(steps, 3, 5, dtype=torch.float64)
    lengths = None if lengths is None else torch.tensor(lengths)
    expected = results_of("reference", layer, x, lengths, monkeypatch)
    layer, x, lengths = layer.to(DEVICE), x.to(DEVICE), None if lengths is None else lengths.to(DEVICE)
    for name, value in results_of("cuda_graph", layer, x, lengths, monkeypatch).items():
        torch.testing.assert_close(
            value.cpu(), expected[name], rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}"
        )


@on_device
@pytest.mark.parametrize("lags, steps, cell, connection", with_every_cell([((1, 2, 3), 5), ((1, 5), 7)]), ids=str)
def test_higher_order_agrees_with_the_reference(
    lags: tuple[int, ...], steps: int, cell: str, connection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layer = HigherOrderRNN(3, 5, cell=cell, connection=connection, lags=lags).double()
    x, lengths = torch.randn(steps, 2, 3, dtype=torch.float64), torch.tensor([steps, 2])
    expected = results_of("reference", layer, x, lengths, monkeypatch)
    actual = results_of("cuda_graph", layer.to(DEVICE), x.to(DEVICE), lengths.to(DEVICE), monkeypatch)
    for name, value in expected.items():
        torch.testing.assert_close(actual[name].cpu(), value, rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


@on_device
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("cell", GATES)
def test_lower_precisions(cell: str, dtype: torch.dtype, tolerance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs within ``tolerance``, gradients in single precision within ten times that."""
    torch.manual_seed(0)
    layer = MultiChannelRNN(64, 63, 3, cell, connection_init="orthogonal").to(dtype).double()
    x = torch.randn(4, 3, 64).to(dtype)
    lengths = torch.tensor([4, 3, 1])
    expected = results_of("reference", layer, x.double(), lengths, monkeypatch)
    layer = layer.to(DEVICE, dtype)
    actual = results_of("cuda_graph", layer, x.to(DEVICE), lengths.to(DEVICE), monkeypatch)
    for name, value in expected.items():
        if value.numel():
            is_gradient = name.startswith("gradient")
            # Only differences between channels move Eq. 5; at first they are hardly larger than bfloat16 tells.
            if dtype == torch.bfloat16 and name in ("gradient of attention_v", "gradient of attention_r"):
                continue
            allowed = tolerance * (10 if is_gradient and dtype == torch.float32 else 1)
            error = (actual[name].cpu().double() - value).abs().max() / value.abs().max()
            assert error <= allowed, f"{name}: {error}"


@on_device
def test_under_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cuda_graph")
    torch.manual_seed(0)
    layer = MultiChannelRNN(4, 5, 3).to(DEVICE)
    x = torch.randn(4, 2, 4, device=DEVICE)
    expected = layer(x).output
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        result = layer(x).output
    result.float().sum().backward()
    assert layer.weight_connection.grad.dtype == torch.float32
    torch.testing.assert_close(result.float(), expected, rtol=0, atol=2e-2)


@on_device
@pytest.mark.parametrize("cell", GATES)
def test_steps_agree_with_the_reference(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = MultiChannelRNN(4 + 5, 5, 3, cell, "state", "orthogonal").double()
    x, h0, c0 = torch.randn(4, 2, 4).double(), torch.randn(2, 5).double(), torch.randn(2, 5).double()
    results = {}
    for backend, device in (("reference", "cpu"), ("cuda_graph", DEVICE)):
        monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
        layer = layer.to(device)
        outputs = by_steps(layer, x.to(device), h0.to(device), c0.to(device))
        results[backend] = (outputs, *torch.autograd.grad(outputs.cos().sum(), list(layer.parameters())))
        with torch.no_grad():
            assert by_steps(layer, x.to(device), h0.to(device), c0.to(device)).equal(outputs)
    for value, expected in zip(results["cuda_graph"], results["reference"], strict=True):
        torch.testing.assert_close(value.cpu(), expected, rtol=1e-10, atol=1e-10)


@on_device
def test_graphs_are_shared_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any length and nearby batch sizes share a graph; the least recently used one goes."""
    from fairseq_plugins.kernels import captured_graphs
    from fairseq_plugins.kernels.multi_channel import cuda_graph

    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cuda_graph")
    monkeypatch.setattr(cuda_graph, "_programs", captured_graphs.Programs())
    monkeypatch.setattr(captured_graphs, "GRAPHS_KEPT", 2)
    small, large = (MultiChannelRNN(2, size, 2, "rnn").to(DEVICE) for size in (3, 5))

    def run(layer: MultiChannelRNN, steps: int, batch_size: int) -> None:
        with torch.no_grad():
            layer(torch.randn(steps, batch_size, 2, device=DEVICE))

    counts = []
    for layer, steps, batch_size in ((small, 2, 1), (small, 5, 4), (small, 2, 5), (small, 3, 2), (large, 2, 1)):
        run(layer, steps, batch_size)
        counts.append(cuda_graph.captures())
    assert counts == [1, 1, 2, 2, 3]
    run(small, 2, 1)
    assert cuda_graph.captures() == 3, "used after the one that was forgotten"
    run(small, 2, 5)
    assert cuda_graph.captures() == 4, "forgotten"


@on_device
def test_graphs_are_forgotten_when_they_hold_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq_plugins.kernels import captured_graphs
    from fairseq_plugins.kernels.multi_channel import cuda_graph

    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cuda_graph")
    monkeypatch.setattr(cuda_graph, "_programs", captured_graphs.Programs())
    monkeypatch.setattr(captured_graphs, "BYTES_KEPT", 0)
    layer = MultiChannelRNN(2, 3, 2, "rnn").to(DEVICE)
    for captures in 1, 3:
        for batch_size in 4, 8:
            layer(torch.randn(2, batch_size, 2, device=DEVICE))
        assert cuda_graph.captures() == captures + 1


@on_device
def test_threads_wait_for_each_others_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq_plugins.kernels.multi_channel import cuda_graph

    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cuda_graph")
    layer = MultiChannelRNN(2, 3, 2, "rnn").to(DEVICE)
    x = torch.randn(7, 2, 2, device=DEVICE)
    expected = layer(x).output
    run, others = cuda_graph._Forward.run, []

    def interrupted(self: cuda_graph._Forward, gates: torch.Tensor, is_first: bool) -> None:
        if not is_first and not others:
            others.append(Thread(target=layer, args=(-x,)))
            others[0].start()
            others[0].join(0.5)
        run(self, gates, is_first)

    monkeypatch.setattr(cuda_graph._Forward, "run", interrupted)
    torch.testing.assert_close(layer(x).output, expected, rtol=0, atol=0)
    others[0].join()


@on_device
@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="this PyTorch has none")
def test_pytorchs_newer_setting_of_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cuda_graph")
    layer = MultiChannelRNN(2, 3, 2, "rnn").to(DEVICE)
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        assert layer(torch.randn(2, 3, 2, device=DEVICE)).output.isfinite().all()
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


@on_device
def test_a_retained_graph_and_no_second_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cuda_graph")
    layer = MultiChannelRNN(2, 3, 2).double().to(DEVICE)
    x = torch.randn(4, 2, 2, dtype=torch.float64, device=DEVICE, requires_grad=True)
    output = layer(x).output
    # Another batch in the same buffers.
    layer(-x)
    gradients = [torch.autograd.grad(output.sin().sum(), x, retain_graph=True)[0] for _ in range(2)]
    assert gradients[0].equal(gradients[1])
    with pytest.raises(RuntimeError, match="no second derivatives: set FAIRSEQ_PLUGINS_BACKEND=autograd"):
        (gradient,) = torch.autograd.grad(layer(x).output.sum(), x, create_graph=True)
        gradient.sum().backward()


@pytest.mark.skipif(IS_INTERPRETED, reason="about other places than the interpreter")
def test_what_is_on_a_cpu_goes_to_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", reason="triton is not installed (extra dev, Linux only)")
    layer = MultiChannelRNN(4, 5, 3)
    x, state = torch.randn(4, 2, 4), layer.initial_state(2)
    outputs = []
    for backend in ("cpp", "cuda_graph"):
        monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
        outputs.append((layer(x).output, layer.step(x[0], state)[0]))
    assert all(a.equal(b) for a, b in zip(*outputs, strict=True))


@pytest.mark.system
@pytest.mark.skipif(IS_INTERPRETED, reason="about other places than the interpreter")
def test_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import sys; sys.modules['triton'] = None\n"
        "import torch; from fairseq_plugins.modules import HigherOrderRNN, MultiChannelRNN\n"
        "MultiChannelRNN(2, 3)(torch.randn(1, 1, 2))\n"
    )
    finished = run_command(["python", "-c", script], status=1, **{kernels.BACKEND_VARIABLE: "cuda_graph"})
    assert "FAIRSEQ_PLUGINS_BACKEND=cuda_graph needs triton: pip install triton" in finished.stderr
