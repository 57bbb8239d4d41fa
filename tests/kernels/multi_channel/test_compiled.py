"""The step that ``torch.compile`` makes, on the CPU: against the reference."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
import torch

from fairseq_plugins.kernels import BACKEND_VARIABLE, dispatch
from fairseq_plugins.kernels.multi_channel import compiled
from fairseq_plugins.modules import MultiChannelRNN

from .results import results_of


def test_it_runs_on_a_cpu_by_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = MultiChannelRNN(5, 7, 3)._layer()
    monkeypatch.setenv(BACKEND_VARIABLE, "compiled")
    choice = dispatch.choose("multi_channel", layer, 4)
    assert choice.name == "compiled"
    monkeypatch.delenv(BACKEND_VARIABLE)
    assert choice.module.refuses(layer, 4) == "it computes on GPUs, and the layer is on cpu"


@pytest.fixture(params=["aot_eager", "inductor"])
def _backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Steps are traced with their gradients, and run as PyTorch's operations or compiled."""
    compiled._compiled_step.cache_clear()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=request.param))
    yield
    compiled._compiled_step.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("_backend")
def test_agrees_with_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = MultiChannelRNN(5, 7, 3).double()
    x, lengths = torch.randn(5, 3, 5, dtype=torch.float64), torch.tensor([5, 1, 3])
    expected = results_of("reference", layer, x, lengths, monkeypatch)
    for name, value in results_of("compiled", layer, x, lengths, monkeypatch).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")
