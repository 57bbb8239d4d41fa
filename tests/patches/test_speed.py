"""fairseq's Adam in one pass on CPUs, optimizers without PyTorch's compiler, and numbers below the least normal one."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.optim.adam import Adam
from torch.utils._python_dispatch import TorchDispatchMode

from fairseq_plugins.patches import speed
from fairseq_plugins.patches.speed import defer_compiler, flush_denormals, fuse_adam
from tests.commands import command_configuration, run_command

from .unpatched import Unpatched, needless

SHAPES = [(7, 5), (3,), (1, 2, 3), ()]


@pytest.fixture
def fused_updates(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many parameters each call of the fused kernel has updated."""
    calls: list[int] = []
    kernel = speed.adamw

    def counting(parameters: list, *arguments: object, **options: object) -> None:
        calls.append(len(parameters))
        kernel(parameters, *arguments, **options)

    monkeypatch.setattr(speed, "adamw", counting)
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


class Operations(TorchDispatchMode):
    """The names of PyTorch's operations that are run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(operation.name())
        return operation(*args, **(kwargs or {}))


def test_fairseq_passes_over_memory_several_times(unpatch: Callable[[object, str], None]) -> None:
    unpatch(Adam, "step")
    optimizer = optimizer_of(torch.float32)
    give_gradients(optimizer, 1)
    with Operations() as operations:
        optimizer.step()
    assert len(operations.names) > 4 * len(SHAPES), needless(fuse_adam)


# ------------------------------------------------------------------------------------------------ compiler

WAITING = """
import sys, fairseq_plugins, torch
fairseq_plugins.register()
from fairseq.optim.adam import Adam
parameter = torch.nn.Parameter(torch.ones(2))
optimizer = Adam([parameter], lr=0.5)
optimizer.load_state_dict(optimizer.state_dict())
optimizer.zero_grad()
parameter.sum().backward()
optimizer.step()
print([round(number, 3) for number in parameter.tolist()], "torch._dynamo" in sys.modules)
"""
COMPILED = """
traced = []

def compiler(graph, inputs):
    traced.extend(str(node.target) for node in graph.graph.nodes)
    return graph.forward

@torch.compile(backend=compiler)
def update(x):
    y = x * 3
    optimizer.zero_grad()
    optimizer.add_param_group({"params": torch.nn.Parameter(x)})
    return y + 1

print(update(torch.ones(1)).tolist(), parameter.grad, len(optimizer.param_groups))
print([operator in " ".join(traced) for operator in ("mul", "add", "Parameter")])
"""


@pytest.mark.system
def test_an_optimizer_does_without_and_a_compiled_function_may_call_it() -> None:
    printed = run_command([sys.executable, "-c", WAITING + COMPILED]).stdout.splitlines()
    assert printed[0] == "[0.5, 0.5] False"
    assert printed[1:] == ["[4.0] None 2", "[True, True, False]"]


def test_an_optimizer_imports_the_compiler(unpatched: Unpatched) -> None:
    assert unpatched.imports_compiler, needless(defer_compiler)


# ------------------------------------------------------------------------------------- the smallest numbers

SCRIPT = """
import sys

import torch
from fairseq.distributed import utils as distributed_utils

import fairseq_plugins
from tests.commands import command_configuration

def gate(size):
    return torch.sigmoid(torch.full((size,), -88.0)).max().item()


def main(cfg):
    # So many that every thread has a part of them.
    assert gate(1_000_000) == 0
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    open(f"{sys.argv[1]}/{rank} of {cfg.distributed_training.distributed_world_size}", "w").close()


if __name__ == "__main__":
    fairseq_plugins.register()
    torch.set_num_threads(2)
    assert gate(1) > 0
    for processes in 1, 2:
        distributed_utils.call_main(command_configuration(processes), main)
"""


@pytest.mark.slow
def test_they_are_zero_in_commands_alone(tmp_path: Path) -> None:
    """A closed gate's matrices would be multiplied some hundred times slower. Registering changes nothing."""
    script, seen = tmp_path / "script.py", tmp_path / "seen"
    script.write_text(SCRIPT, encoding="utf-8")
    seen.mkdir()
    run_command(["python", script, seen])
    assert sorted(path.name for path in seen.iterdir()) == ["0 of 1", "0 of 2", "1 of 2"]


@pytest.fixture
def denormals() -> Iterator[None]:
    """They are numbers again afterwards, too."""
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(False)


def test_fairseq_computes_with_them(denormals: None, unpatch: Callable[[object, str], None]) -> None:
    gates = []

    def main(cfg: object) -> None:
        gates.append(torch.sigmoid(torch.full((1,), -88.0)).item())

    distributed_utils.call_main(command_configuration(), main)
    torch.set_flush_denormal(False)
    unpatch(distributed_utils, "call_main")
    distributed_utils.call_main(command_configuration(), main)
    assert gates[0] == 0
    assert gates[1] > 0, needless(flush_denormals)
