"""Eq. 15 of RCRN: each backend against the one that reads like the paper."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_plugins.kernels import BACKEND_VARIABLE, dispatch, extension
from fairseq_plugins.kernels.forget_scan import cpu, forget_scan, reference
from fairseq_plugins.modules import forget_scan as public
from tests.kernels.interpreter import IS_INTERPRETED, run_under_interpreter

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
BACKENDS = ["eager", "cpp"] + (["triton"] if IS_INTERPRETED or torch.cuda.is_available() else [])


def problem(steps: int, batch_size: int, features: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """A gate, which is 0 and 1 in places, a candidate and a c(0)."""
    torch.manual_seed(0)
    gate = torch.rand(steps, batch_size, features, dtype=dtype)
    chosen = torch.rand_like(gate)
    gate = gate.masked_fill(chosen < 0.2, 0).masked_fill(chosen > 0.8, 1)
    candidate = torch.randn(steps, batch_size, features, dtype=dtype)
    initial = torch.randn(batch_size, features, dtype=dtype)
    return [each.requires_grad_() for each in (gate, candidate, initial)]


@pytest.mark.slow
def test_under_the_interpreter() -> None:
    """All tests of this file, with the backend for GPUs."""
    run_under_interpreter(__file__, has_loops=True)


@pytest.mark.system
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("steps, batch_size, features", [(1, 1, 1), (7, 2, 3), (5, 3, 130)])
def test_equals_the_reference_gradients_too(
    steps: int, batch_size: int, features: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, backend)
    device = "cuda" if backend == "triton" and not IS_INTERPRETED else "cpu"
    given = [each.detach().to(device).requires_grad_() for each in problem(steps, batch_size, features)]
    assert dispatch.choose("forget_scan", given[0]).name == backend
    expected = reference.forget_scan(*given)
    actual = forget_scan(*given)
    torch.testing.assert_close(actual, expected, **TOLERANCE)
    gradient = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(actual, given, gradient), torch.autograd.grad(expected, given, gradient), **TOLERANCE
    )


def test_by_hand() -> None:
    """A gate of 0 takes the candidate, a gate of 1 keeps what there was, and one between mixes, from zero on."""
    gate = torch.tensor([0.5, 0.0, 1.0, 0.25]).view(4, 1, 1)
    candidate = torch.tensor([2.0, 3.0, 7.0, 5.0]).view(4, 1, 1)
    assert public(gate, candidate).flatten().tolist() == [1.0, 3.0, 3.0, 0.25 * 3 + 0.75 * 5]
    kept = public(torch.ones(3, 1, 1), candidate[:3], torch.tensor([[4.0]]))
    assert kept.flatten().tolist() == [4.0, 4.0, 4.0]


def test_gradients_by_finite_differences() -> None:
    torch.autograd.gradcheck(forget_scan, problem(4, 2, 3))


def test_columns_in_any_layout() -> None:
    gate, candidate, initial = problem(5, 4, 6)
    transposed = [each.transpose(-1, -2).contiguous().transpose(-1, -2) for each in (gate, candidate, initial)]
    torch.testing.assert_close(forget_scan(*transposed), reference.forget_scan(gate, candidate, initial), **TOLERANCE)


def test_half_precision_is_computed_in_single() -> None:
    gate, candidate, initial = (each.detach().bfloat16() for each in problem(6, 2, 3))
    found = forget_scan(gate, candidate, initial)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, reference.forget_scan(gate.float(), candidate.float(), initial.float()))


def test_nothing_to_do() -> None:
    assert forget_scan(torch.zeros(0, 2, 3), torch.zeros(0, 2, 3)).shape == (0, 2, 3)
    assert forget_scan(torch.zeros(2, 0, 3), torch.zeros(2, 0, 3)).shape == (2, 0, 3)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit each other: .*2, 1, 3.*2, 1, 4"):
        forget_scan(torch.zeros(2, 1, 3), torch.zeros(2, 1, 4))


def test_without_a_compiler_it_runs_on_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "compiled", lambda: None)
    monkeypatch.setattr(extension, "reason", {cpu.SOURCE: "there is no C++ compiler"}.get)
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)
    given = problem(4, 2, 3)
    choice = dispatch.choose("forget_scan", given[0])
    assert (choice.name, choice.refused["cpp"]) == ("eager", "it is off here: there is no C++ compiler")
    torch.testing.assert_close(forget_scan(*given), reference.forget_scan(*given), **TOLERANCE)


def test_second_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast ones name what has some."""
    gate, candidate = (torch.rand(3, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="no second derivatives: set FAIRSEQ_PLUGINS_BACKEND=reference for create_"):
        torch.autograd.grad(forget_scan(gate, candidate).sum(), gate, create_graph=True)
    monkeypatch.setenv("FAIRSEQ_PLUGINS_BACKEND", "reference")
    assert torch.autograd.gradgradcheck(forget_scan, (gate, candidate))
