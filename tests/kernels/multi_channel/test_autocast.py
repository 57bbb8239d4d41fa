"""The C++ kernels in single precision while autocast is on, as on CPUs that do not multiply in its precision."""

from __future__ import annotations

import pytest
import torch

from fairseq_plugins import kernels
from fairseq_plugins.kernels.multi_channel import cpu
from fairseq_plugins.kernels.multi_channel.specification import CONNECTIONS, GATES
from fairseq_plugins.modules import ConventionalRNN, MultiChannelRNN

from .results import by_steps, results_of

HALF = [torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def _single_precision_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "has_bfloat16", lambda: False)
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, "cpp")


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("cell", GATES)
def test_sequences_with_their_backward_pass(
    cell: str, connection: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layer = MultiChannelRNN(4, 5, 3, cell, connection)
    x, lengths = torch.randn(6, 9, 4), torch.tensor([6, 6, 5, 4, 3, 3, 2, 1, 0])
    expected = results_of("cpp", layer, x, lengths, monkeypatch)
    with torch.autocast("cpu", dtype):
        found = results_of("cpp", layer, x, lengths, monkeypatch)
    for name, value in expected.items():
        assert found[name].equal(value), name


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("layer_of", [MultiChannelRNN, ConventionalRNN])
def test_steps_with_their_backward_pass(
    layer_of: type[MultiChannelRNN] | type[ConventionalRNN], dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    layer = layer_of(4 + 5, 5)
    x, h0, c0 = torch.randn(6, 9, 4), torch.randn(9, 5).requires_grad_(), torch.randn(9, 5).requires_grad_()

    def results() -> list[torch.Tensor]:
        outputs = by_steps(layer, x, h0, c0)
        return [outputs, *torch.autograd.grad(outputs.cos().sum(), [h0, c0, *layer.parameters()])]

    expected = results()
    with torch.autocast("cpu", dtype):
        found = results()
        with torch.no_grad():
            assert by_steps(layer, x, h0, c0).equal(expected[0])
    assert all(map(torch.equal, found, expected))
