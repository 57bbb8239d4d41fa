"""``asgd`` and ``non_monotone``: NT-ASGD against torch's own optimizers, step by step."""

from __future__ import annotations

import copy

import pytest
import torch
from fairseq.optim.sgd import SGD
from omegaconf import OmegaConf
from torch import nn

from fairseq_plugins.errors import InputError
from fairseq_plugins.optim.asgd import ASGDConfig, AveragedSGD
from fairseq_plugins.optim.non_monotone import NonMonotone, NonMonotoneConfig

LR, DECAY = 0.5, 0.01


def make(values: list[float]) -> tuple[nn.Parameter, AveragedSGD]:
    parameter = nn.Parameter(torch.tensor(values, dtype=torch.float64))
    return parameter, AveragedSGD(OmegaConf.structured(ASGDConfig(weight_decay=DECAY, lr=[LR])), [parameter])


def schedule(optimizer: AveragedSGD, **options) -> NonMonotone:
    return NonMonotone(
        OmegaConf.structured(
            NonMonotoneConfig(**{"lr": [LR], "stop_min_lr": -1.0, "maximize_best_checkpoint_metric": False, **options})
        ),
        optimizer,
    )


def update(parameter: nn.Parameter, optimizer: AveragedSGD | torch.optim.Optimizer, gradient: torch.Tensor) -> None:
    parameter.grad = gradient.clone()
    optimizer.step()


def test_switch_and_averages_equal_torch_step_by_step() -> None:
    torch.manual_seed(0)
    parameter, optimizer = make([1.0, -2.0, 3.0])
    scheduler = schedule(optimizer, non_monotone_interval=2)
    expected = nn.Parameter(parameter.detach().clone())
    peer: torch.optim.Optimizer = torch.optim.SGD([expected], lr=LR, weight_decay=DECAY)
    # At the fifth epoch 4.5 is above 4.0, the least of all but the last two.
    losses = [5.0, 4.0, 4.2, 4.1, 4.5, 3.0, 9.0]
    for epoch, loss in enumerate(losses, start=1):
        iterates = []
        for _ in range(3):
            gradient = torch.randn(3, dtype=torch.float64)
            optimizer.hold_parameters()
            update(parameter, optimizer, gradient)
            update(expected, peer, gradient)
            assert parameter.equal(expected)
            iterates.append(parameter.detach().clone())
        optimizer.hold_averages()
        if epoch > 5:
            assert parameter.equal(peer.state[expected]["ax"]), "what validates is torch's average"
        else:
            assert parameter.equal(expected)
        if epoch == 6:
            torch.testing.assert_close(parameter.data, torch.stack(iterates[1:]).mean(0))
        scheduler.step(epoch, loss)
        assert optimizer.is_averaging == (epoch >= 5)
        if epoch == 5:
            peer = torch.optim.ASGD([expected], lr=LR, t0=0, lambd=0, weight_decay=DECAY)


@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.parametrize("holds_averages", [False, True])
def test_saved_and_loaded_it_goes_on_the_same(averages: bool, holds_averages: bool) -> None:
    torch.manual_seed(0)
    gradients = torch.randn(8, 2, dtype=torch.float64)
    parameter, optimizer = make([1.0, 2.0])
    if not averages:
        optimizer.wait_to_average()
    for gradient in gradients[:4]:
        update(parameter, optimizer, gradient)
    if holds_averages:
        optimizer.hold_averages()
    saved, state = parameter.detach().clone(), copy.deepcopy(optimizer.state_dict())
    other, loaded = make(saved.tolist())
    loaded.load_state_dict(state)
    assert loaded.is_averaging == averages
    for each in optimizer, loaded:
        each.hold_parameters()
    for gradient in gradients[4:]:
        update(parameter, optimizer, gradient)
        update(other, loaded, gradient)
    assert parameter.equal(other)
    optimizer.hold_averages()
    loaded.hold_averages()
    assert parameter.equal(other)


def test_holding_twice_changes_nothing() -> None:
    parameter, optimizer = make([1.0])
    optimizer.hold_averages()
    assert parameter.item() == 1.0, "no update yet"
    for _ in range(3):
        update(parameter, optimizer, torch.ones(1, dtype=torch.float64))
    own = parameter.item()
    optimizer.hold_averages()
    averages = parameter.item()
    optimizer.hold_averages()
    assert parameter.item() == averages != own
    optimizer.hold_parameters()
    optimizer.hold_parameters()
    assert parameter.item() == own


def test_stop() -> None:
    _, optimizer = make([1.0])
    scheduler = schedule(optimizer, non_monotone_interval=1, when_non_monotone="stop", stop_min_lr=0.0)
    assert optimizer.is_averaging, "from the first update on"
    assert [scheduler.step(epoch, loss) for epoch, loss in enumerate([3.0, 2.0, 2.5, 2.9, 2.0], 1)] == [LR] * 3 + [
        0.0
    ] * 2
    resumed = schedule(make([1.0])[1], when_non_monotone="stop", stop_min_lr=0.0)
    resumed.load_state_dict(scheduler.state_dict())
    assert resumed.step_update(7) == 0


def test_a_loss_that_is_no_number_is_the_worst() -> None:
    scheduler = schedule(make([1.0])[1], non_monotone_interval=1, when_non_monotone="stop", stop_min_lr=0.0)
    losses = [float("nan"), 3.0, 2.0, float("nan")]
    assert [scheduler.step(epoch, loss) for epoch, loss in enumerate(losses, 1)] == [LR] * 3 + [0.0]


def test_what_does_not_go_together() -> None:
    sgd = SGD(type("Options", (), {"lr": [1.0], "momentum": 0.0, "weight_decay": 0.0}), [nn.Parameter(torch.ones(1))])
    with pytest.raises(InputError, match="non_monotone needs --optimizer asgd"):
        schedule(sgd)
    with pytest.raises(InputError, match="--non-monotone-interval must be 0 or more, not -1"):
        schedule(make([1.0])[1], non_monotone_interval=-1)
    with pytest.raises(InputError, match="needs --stop-min-lr 0"):
        schedule(make([1.0])[1], when_non_monotone="stop")


def test_of_a_metric_more_is_better() -> None:
    """As fairseq's reduce_lr_on_plateau has it with --maximize-best-checkpoint-metric."""
    _, optimizer = make([1.0])
    scheduler = schedule(
        optimizer,
        non_monotone_interval=1,
        when_non_monotone="stop",
        stop_min_lr=0.0,
        maximize_best_checkpoint_metric=True,
    )
    assert [scheduler.step(epoch, accuracy) for epoch, accuracy in enumerate([50.0, 52.0, 55.0, 54.0], 1)] == [LR] * 4
    assert scheduler.step(5, 53.0) == 0
