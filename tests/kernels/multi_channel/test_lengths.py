"""How many tokens of each row are real: whole numbers of any type, from 0 to as many as there are steps."""

from __future__ import annotations

import pytest
import torch

from fairseq_plugins import kernels
from fairseq_plugins.kernels import conventional_layers
from fairseq_plugins.kernels.checks import checked_lengths
from fairseq_plugins.modules import ConventionalRNN, HigherOrderRNN, MultiChannelRNN

LAYERS = [MultiChannelRNN, HigherOrderRNN, ConventionalRNN]


@pytest.fixture(params=["cpp", "eager", "autograd", "reference"])
def _backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, request.param)


@pytest.mark.usefixtures("_backend")
@pytest.mark.parametrize("lengths", [[5, 7], [-1, 5], [6, 0]], ids=str)
def test_lengths_that_x_does_not_have(lengths: list[int]) -> None:
    layer = MultiChannelRNN(3, 4)
    least, most = min(lengths), max(lengths)
    with pytest.raises(ValueError, match=f"lengths must be from 0 to the 5 steps of x, not from {least} to {most}"):
        layer(torch.randn(5, 2, 3), torch.tensor(lengths))


@pytest.mark.usefixtures("_backend")
@pytest.mark.parametrize(
    "lengths, given", [([5], r"int64 of shape \(1,\)"), ([[5, 4]], r"int64 of shape \(1, 2\)"), ([5.0, 4.0], "float32")]
)
def test_lengths_that_are_not_one_for_each_row(lengths: list, given: str) -> None:
    with pytest.raises(ValueError, match=f"lengths must be 2 whole numbers, one for each row, not {given}"):
        MultiChannelRNN(3, 4)(torch.randn(5, 2, 3), torch.tensor(lengths))


def test_a_conventional_layer_on_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conventional_layers, "is_faster", lambda *_: True)
    with pytest.raises(ValueError, match="lengths must be from 0 to the 5 steps of x, not from 5 to 7"):
        ConventionalRNN(3, 4, "gru")(torch.randn(5, 2, 3), torch.tensor([5, 7]))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16])
@pytest.mark.parametrize("layer_of", LAYERS)
def test_lengths_of_other_types(layer_of: type, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conventional_layers, "is_faster", lambda *_: True)
    layer, x, lengths = layer_of(3, 4), torch.randn(5, 3, 3), torch.tensor([5, 2, 0])
    expected, found = layer(x, lengths), layer(x, lengths.to(dtype))
    assert found.output.equal(expected.output)
    assert all(map(torch.equal, found.state, expected.state))
    found.output.sum().backward()


def test_a_gpu_is_not_asked_what_the_lengths_are() -> None:
    """Nor is the meta device, which does not know."""
    x = torch.zeros(5, 2, 3, device="meta")
    lengths = checked_lengths(torch.tensor([5, 7], dtype=torch.int32, device="meta"), x)
    assert lengths is not None and lengths.dtype == torch.long and lengths.is_meta
    assert checked_lengths(None, x) is None
