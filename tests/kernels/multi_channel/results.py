"""Everything that a layer returns and all gradients, for comparisons between backends."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_plugins import kernels
from fairseq_plugins.kernels.multi_channel import cpu
from fairseq_plugins.modules.recurrent.connected import ConnectedRNN


def results_of(
    backend: str, layer: ConnectedRNN, x: Tensor, lengths: Tensor | None, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Tensor]:
    """Outputs of two chained calls (the second goes on from a state with different times) and all gradients."""
    monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    assert backend != "cpp" or cpu.compiled() is not None, "eager would be compared with itself"
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
        outputs |= {f"{name} {detail}": value for detail, value in result.details.items()}
        outputs |= {f"{name} {field}": value for field, value in zip(result.state._fields, result.state, strict=True)}
    objective = sum(
        (torch.randn(value.shape, generator=generator, dtype=torch.float64).to(x) * value).sum()
        for value in outputs.values()
        if value.is_floating_point()
    )
    inputs = {"x": x, "h0": h0, **({"c0": c0} if layer.has_cell_state else {}), **dict(layer.named_parameters())}
    gradients = torch.autograd.grad(objective, list(inputs.values()))
    return outputs | {f"gradient of {name}": g for name, g in zip(inputs, gradients, strict=True)}


def by_steps(layer: torch.nn.Module, x: Tensor, h0: Tensor, c0: Tensor) -> Tensor:
    """(T, B, H), with every step's input made from the output before it, as with input feeding."""
    state = layer.initial_state(x.size(1), h0, c0)
    step = layer.stepper(x.size(1))
    output, outputs = h0, []
    for x_t in x.unbind(0):
        output, state = step(torch.cat([x_t, output], dim=-1), state)
        outputs.append(output)
    return torch.stack([*outputs, sum(value.sum() for value in state if value.is_floating_point()).expand_as(output)])
