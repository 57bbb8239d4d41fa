"""RMSProp as TensorFlow 1 has it: by its formula in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fairseq_plugins.errors import InputError
from fairseq_plugins.optim.rmsprop import FairseqRMSprop, RMSpropConfig, TensorFlowRMSprop


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_the_formula(momentum: float, weight_decay: float) -> None:
    generator = np.random.default_rng(1)
    w = generator.normal(size=5)
    parameter = torch.nn.Parameter(torch.tensor(w))
    optimizer = TensorFlowRMSprop([parameter], lr=0.01, momentum=momentum, weight_decay=weight_decay)
    mean_square, velocity = np.ones(5), np.zeros(5)
    for _ in range(5):
        gradient = generator.normal(size=5) * 1e-3
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        gradient = gradient + weight_decay * w
        mean_square = 0.9 * mean_square + 0.1 * gradient**2
        velocity = momentum * velocity + 0.01 * gradient / np.sqrt(mean_square + 1e-10)
        w = w - velocity
        np.testing.assert_allclose(parameter.detach().numpy(), w, rtol=1e-12)


def test_it_starts_slower_than_torch_s() -> None:
    """The mean square is 1 at the start: a small gradient's first step is small, not lr / sqrt(0.1)."""
    steps = []
    for make in (
        lambda parameters: TensorFlowRMSprop(parameters, lr=1.0),
        lambda parameters: torch.optim.RMSprop(parameters, lr=1.0, alpha=0.9),
    ):
        parameter = torch.nn.Parameter(torch.zeros(1))
        parameter.grad = torch.tensor([1e-3])
        make([parameter]).step()
        steps.append(-parameter.item())
    assert steps[0] == pytest.approx(1e-3 / 0.9**0.5, rel=1e-4)
    assert steps[1] == pytest.approx(1 / 0.1**0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rmsprop_decay": 2.0}, "--rmsprop-decay must be at least 0 and below 1, not 2.0"),
        ({"rmsprop_momentum": -0.1}, "--rmsprop-momentum must be at least 0 and below 1, not -0.1"),
        ({"rmsprop_eps": float("nan")}, "--rmsprop-eps must be at least 0, not nan"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError) as raised:
        FairseqRMSprop(RMSpropConfig(lr=[1e-3], **options), [torch.nn.Parameter(torch.zeros(1))])
    assert str(raised.value) == message
