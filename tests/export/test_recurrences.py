"""The exported form of each recurrent layer computes what the layer computes, in the place of its slow reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_plugins.errors import InputError
from fairseq_plugins.export.recurrences import ExportedByStep, exported, with_exported_layers
from fairseq_plugins.kernels import BACKEND_VARIABLE
from fairseq_plugins.modules import RecurrentStack
from fairseq_plugins.modules.recurrent.contract import RecurrentNetwork, RecurrentOutput
from fairseq_plugins.modules.recurrent.conventional import ConventionalRNN, ConventionalState
from fairseq_plugins.modules.recurrent.recurrently_controlled import RecurrentlyControlledRNN
from fairseq_plugins.modules.recurrent.registry import RECURRENT_KINDS, recurrent_kind

LENGTHS = [7, 3, 0, 1, 5]
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("lstm", {}),
    ("gru", {}),
    ("rnn", {}),
    ("mc_rnn", {}),
    ("mc_rnn", {"cell": "gru", "connection": "gate", "channels": 2}),
    ("mc_rnn", {"cell": "rnn", "channels": 1}),
    ("mc_rnn", {"connection_rate": 0.3}),
    ("ho_rnn", {}),
    ("ho_rnn", {"cell": "gru", "connection": "gate"}),
    ("ho_rnn", {"cell": "rnn", "lags": "1,4", "connection": "gate"}),
    ("hm_rnn", {}),
    ("rcrn", {}),
    ("rcrn", {"cell": "gru", "rcrn_output_gate": "linear"}),
    ("dilated_rnn", {"first_dilation": 2}),
    ("dilated_rnn", {"cell": "gru", "first_dilation": 3, "fusion": "concat"}),
]


def make(kind: str, options: dict[str, Any], is_bidirectional: bool, layers: int = 2) -> RecurrentStack:
    """Layers of random parameters, also where they would start as zeros or the identity."""
    torch.manual_seed(1)
    stack = RecurrentStack(kind, 6, [4] * layers, is_bidirectional, options=recurrent_kind(kind).options(**options))
    for parameter in stack.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return stack.eval()


def test_every_kind_is_here() -> None:
    assert {kind for kind, _ in OPTIONS} == RECURRENT_KINDS.keys()


@pytest.mark.parametrize("is_bidirectional", [False, True], ids=["forwards", "both"])
@pytest.mark.parametrize(("kind", "options"), OPTIONS)
@torch.no_grad()
def test_a_loop_is_the_layer(
    kind: str, options: dict[str, Any], is_bidirectional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BACKEND_VARIABLE, "reference")
    stack = make(kind, options, is_bidirectional)
    form: Any = with_exported_layers(torch.nn.ModuleList([stack]))[0]  # type: ignore[index]
    x, lengths = torch.randn(7, 5, 6), torch.tensor(LENGTHS)
    expected, result = stack(x, lengths), form(x, lengths)
    torch.testing.assert_close(result.output, expected.output)
    torch.testing.assert_close(form.summaries(result, lengths), stack.summaries(expected, lengths))
    assert form.summary_sizes == stack.summary_sizes


@pytest.mark.parametrize(("kind", "options"), OPTIONS)
@torch.no_grad()
def test_steps_go_on_from_the_start_that_they_are_given(kind: str, options: dict[str, Any]) -> None:
    """As a decoder runs them: from an h0 and a c0."""
    for layer in make(kind, options, is_bidirectional=False).layers:
        form = exported(layer)
        starts = [torch.randn(5, layer.output_size) for _ in range(1 + layer.has_cell_state)]
        expected, result = layer.initial_state(5, *starts), form.initial_state(5, *starts)
        for x in torch.randn(6, 5, layer.input_size):
            right, expected = layer.step(x, expected)
            output, result = form.step(x, result)
            torch.testing.assert_close(output, right)


class Leaky(RecurrentNetwork[tuple[Tensor]]):
    """A user's own."""

    input_size = output_size = 4
    has_cell_state = False

    def forward(self, *args: Any, **keywords: Any) -> Any:
        raise NotImplementedError

    def recurrent_parameters(self) -> list[str]:
        return []

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        output = 0.5 * state[0] + x
        return output, (output,)

    def initial_state(self, batch_size: int, h0: Tensor | None = None, c0: Tensor | None = None) -> tuple[Tensor]:
        return (torch.zeros(batch_size, 4) if h0 is None else h0,)


def test_a_layer_of_ones_own_runs_by_its_step() -> None:
    form = exported(Leaky())
    assert isinstance(form, ExportedByStep)
    [row] = form.step(torch.zeros(1, 4), (torch.tensor([[8.0, 6.0, 4.0, 2.0]]),))[0]
    assert row.tolist() == [4, 3, 2, 1]
    result = form(torch.ones(3, 2, 4), torch.tensor([3, 1]))
    assert result.output[:, :, 0].tolist() == [[1, 1], [1.5, 0], [1.75, 0]]
    assert [row.tolist() for row in result.state[0][:, 0].split(1)] == [[1.75], [1.0]]


class Doubled(ConventionalRNN):
    """A user's own, derived from one of ours."""

    def forward(self, *args: Any, **keywords: Any) -> RecurrentOutput:
        return super().forward(*args, **keywords)._replace(output=2 * super().forward(*args, **keywords).output)

    def step(self, x: Tensor, state: ConventionalState) -> tuple[Tensor, ConventionalState]:
        output, state = super().step(x, state)
        return 2 * output, state


class InBothDirections(RecurrentlyControlledRNN):
    """The same, of a layer that does not run step by step."""


@torch.no_grad()
def test_a_derived_layer_is_not_taken_for_the_one_that_it_is_derived_from() -> None:
    for cell, parts in ("lstm", 2), ("gru", 1):
        layer = Doubled(6, 4, cell).eval()
        form = exported(layer)
        assert isinstance(form, ExportedByStep) and len(form.initial_state(1)) == parts
        x, lengths = torch.randn(7, 5, 6), torch.tensor(LENGTHS)
        torch.testing.assert_close(form(x, lengths).output, layer(x, lengths).output)
    with pytest.raises(InputError, match="InBothDirections does not run step by step: it cannot be exported"):
        exported(InBothDirections(6, 4, bidirectional=True))
