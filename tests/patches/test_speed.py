"""fairseq's Adam in one pass on CPUs: its own numbers, and its own state."""

from __future__ import annotations

import copy
import inspect

import pytest
import torch
from fairseq.optim.adam import Adam
from fairseq_plugins.features import fused_adam

import fairseq_plugins

SHAPES = [(7, 5), (3,), (1, 2, 3), ()]


@pytest.fixture
def fused_updates(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many parameters each call of the fused kernel has updated."""
    calls: list[int] = []
    kernel = fused_adam.adamw

    def counting(parameters: list, *arguments: object, **options: object) -> None:
        calls.append(len(parameters))
        kernel(parameters, *arguments, **options)

    monkeypatch.setattr(fused_adam, "adamw", counting)
    return calls


def optimizer_of(dtype: torch.dtype, **options: object) -> Adam:
    generator = torch.Generator().manual_seed(1)
    parameters = [torch.nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in SHAPES]
    groups = [{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.3, "weight_decay": 0.1}]
    return Adam(groups, **{"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.02, **options})


def parameters_of(optimizer: Adam) -> list[torch.nn.Parameter]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def give_gradients(optimizer: Adam, number: int) -> None:
    generator = torch.Generator().manual_seed(number)
    for index, p in enumerate(parameters_of(optimizer)):
        gradient = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype)
        # One takes no part in some steps, so that its count of steps falls behind.
        p.grad = None if index == 1 and number % 3 == 0 else gradient


def fairseqs_own(optimizer: Adam) -> None:
    inspect.unwrap(Adam.step)(optimizer)


def assert_same(fused: Adam, own: Adam, tolerance: float) -> None:
    for p, expected in zip(parameters_of(fused), parameters_of(own), strict=True):
        torch.testing.assert_close(p, expected, rtol=tolerance, atol=tolerance)
        assert fused.state[p].keys() == own.state[expected].keys()
        for name, value in own.state[expected].items():
            if name == "step":
                assert fused.state[p][name] == value and isinstance(fused.state[p][name], int)
            else:
                torch.testing.assert_close(fused.state[p][name], value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_its_steps_are_fairseqs(fused_updates: list[int], dtype: torch.dtype, tolerance: float) -> None:
    fairseq_plugins.register()
    fused, own = optimizer_of(dtype), optimizer_of(dtype)
    for number in range(1, 21):
        for optimizer in (fused, own):
            give_gradients(optimizer, number)
        fused.step()
        fairseqs_own(own)
        assert_same(fused, own, tolerance)
        if number == 10:  # a checkpoint of either goes on with the other
            states = [copy.deepcopy(optimizer.state_dict()) for optimizer in (fused, own)]
            fused.load_state_dict(states[1])
            own.load_state_dict(states[0])
    assert sum(fused_updates) == 20 * 4 - 6


def test_what_the_kernel_does_not_take_is_fairseqs(fused_updates: list[int]) -> None:
    for dtype, options in ((torch.bfloat16, {}), (torch.float32, {"amsgrad": True})):
        optimizer, own = optimizer_of(dtype, **options), optimizer_of(dtype, **options)
        for number in (1, 2):
            for each in (optimizer, own):
                give_gradients(each, number)
            optimizer.step()
            fairseqs_own(own)
        assert_same(optimizer, own, 0)
    assert fused_updates == []


def test_columns_of_memory() -> None:
    """What does not lie row by row."""
    optimizers = []
    for _ in range(2):
        p = torch.nn.Parameter(torch.arange(6.0, dtype=torch.float64).view(2, 3).t())
        p.grad = torch.ones(3, 2, dtype=torch.float64)
        optimizers.append(Adam([p], lr=0.1))
    optimizers[0].step()
    fairseqs_own(optimizers[1])
    assert_same(*optimizers, 1e-12)
