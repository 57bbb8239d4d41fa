"""What recurrent layers are called with: a wrong size is said, and padding changes nothing, whatever is there."""

from __future__ import annotations

import math
import sys

import pytest
import torch
from torch import Tensor, nn

from fairseq_plugins import kernels
from fairseq_plugins.kernels import conventional_layers
from fairseq_plugins.modules import (
    RECURRENT_KINDS,
    ConventionalRNN,
    DilatedRNNStack,
    LayerSizes,
    MultiChannelRNN,
    RecurrentlyControlledRNN,
    RecurrentNetwork,
    RecurrentStack,
)
from fairseq_plugins.modules.recurrent import registry
from tests.commands import CHECKOUT, run_command
from tests.documentation.markdown import blocks

STEPS, ROWS, SIZE, HIDDEN = 5, 4, 6, 8
KINDS = sorted(RECURRENT_KINDS)
CRASHES = """
import torch
from fairseq_plugins.modules import ConventionalRNN, DilatedRNN, MultiChannelRNN, RecurrentlyControlledRNN

def show(layer, width, rows):
    state = None if rows is None else layer.initial_state(rows)
    for call in [lambda: layer(torch.randn(5, 4, width), None, state)] + (
        [lambda: layer.stepper(4)(torch.randn(4, width), state)] if state else []
    ):
        try:
            call()
        except ValueError as error:
            print(error)

for layer in ConventionalRNN(16, 8), RecurrentlyControlledRNN(16, 8):
    show(layer, 12, None)
    show(layer, 20, None)
one_way = RecurrentlyControlledRNN(16, 8, bidirectional=False)
for layer in ConventionalRNN(16, 8), one_way, DilatedRNN(16, 8, 2), MultiChannelRNN(16, 8):
    for rows in 2, 7:
        show(layer, 16, rows)
"""


def network_of(kind: str) -> RecurrentNetwork:
    """In one direction, with two levels where it handles depth."""
    found = RECURRENT_KINDS[kind]
    return found.make(found.options(), LayerSizes(SIZE, (HIDDEN,) * (2 if found.handles_depth else 1)))


@pytest.mark.system
def test_what_ended_the_process_is_said() -> None:
    lines = run_command(["python", "-c", CRASHES]).stdout.splitlines()
    widths = [f"input must have width 16, not {width}" for width in (12, 20)]
    rows = [f"the state has {rows} rows, the input 4" for rows in (2, 2, 7, 7)]
    assert lines == widths * 2 + rows * 4


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_said(kind: str) -> None:
    network = network_of(kind)
    x, state = torch.randn(STEPS, ROWS, SIZE), network.initial_state(ROWS)
    first, name = state[0], state._fields[0]
    narrow, double = (state._replace(**{name: part}) for part in (first[..., :-1], first.double()))
    wrong = {
        r"input must have 3 dimensions \(T, B, D\), not 2": (x[0], state),
        "input must have width 6, not 5": (x[..., :5], state),
        "input must be of float32, not of float64": (x.double(), state),
        "input must be on cpu, not on meta": (x.to("meta"), state),
        "the state has 2 rows, the input 4": (x, network.initial_state(2)),
        "the state has 7 rows, the input 4": (x, network.initial_state(7)),
        f"{name} of the state must be of shape .*8.*, not .*7": (x, narrow),
        f"{name} of the state must be of float32, not of float64": (x, double),
        f"the state must be a {type(state).__name__} of tensors, not a tuple of int": (x, (1, 2)),
    }
    for message, (given, start) in wrong.items():
        with pytest.raises(ValueError, match=message):
            network(given, None, start)
        if "dimensions" in message:
            continue
        for step in network.step, network.stepper(ROWS):
            step(x[0], state)
            with pytest.raises(ValueError, match=message):
                step(given[0], start)


@pytest.mark.parametrize("lengths", [[5, 7, 1, 1], [-1, 5, 5, 5]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_lengths_that_x_does_not_have(kind: str, lengths: list[int]) -> None:
    message = f"lengths must be from 0 to the 5 steps of x, not from {min(lengths)} to {max(lengths)}"
    for network in network_of(kind), RecurrentStack(kind, SIZE, [HIDDEN] * 2, bidirectional=True):
        with pytest.raises(ValueError, match=message):
            network(torch.randn(STEPS, ROWS, SIZE), torch.tensor(lengths))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", [None, "autograd", "reference"])
def test_no_steps(kind: str, backend: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend:
        monkeypatch.setenv(kernels.BACKEND_VARIABLE, backend)
    x = torch.randn(0, ROWS, SIZE, requires_grad=True)
    network = network_of(kind)
    with torch.no_grad():
        start = network(torch.randn(2, ROWS, SIZE)).state
    for lengths in None, torch.zeros(ROWS, dtype=torch.long):
        result = network(x, lengths, start)
        assert result.output.shape == (0, ROWS, network.output_size)
        for after, before in zip(result.state, start, strict=True):
            torch.testing.assert_close(after, before)
        if result.output.requires_grad:
            result.output.sum().backward()
        assert not network.summaries(result, lengths)[0].any()
    stack = RecurrentStack(kind, SIZE, [HIDDEN] * 2, bidirectional=True)
    result = stack(x, lengths)
    assert result.output.shape == (0, ROWS, stack.output_size)
    assert [summary.shape for summary in stack.summaries(result, lengths)] == [
        (ROWS, size) for size in stack.summary_sizes
    ]


@pytest.mark.parametrize("nothing", [math.nan, math.inf])
@pytest.mark.parametrize("is_on_our_kernel", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_at_padding_changes_nothing(
    kind: str, is_on_our_kernel: bool, nothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conventional_layers, "is_faster", lambda *_: is_on_our_kernel)
    networks = [network_of(kind), RecurrentStack(kind, SIZE, [HIDDEN] * 2, bidirectional=True)]
    if kind == "rcrn":
        networks += [RecurrentlyControlledRNN(SIZE, HIDDEN, cell) for cell in ("lstm", "gru")]
    lengths = torch.tensor([5, 2, 0, 4])
    x = torch.randn(STEPS, ROWS, SIZE)
    padding = torch.arange(STEPS).unsqueeze(1) >= lengths
    for network in networks:
        plain, _ = outputs_and_gradients(network, x.masked_fill(padding.unsqueeze(-1), 0), lengths)
        found, of_x = outputs_and_gradients(network, x.masked_fill(padding.unsqueeze(-1), nothing), lengths)
        torch.testing.assert_close(found, plain, rtol=0, atol=0)
        assert not of_x[padding].any()
        with torch.no_grad():
            output = network(x.masked_fill(padding.unsqueeze(-1), nothing), lengths).output
        torch.testing.assert_close(output, plain[0])


def outputs_and_gradients(network: nn.Module, x: Tensor, lengths: Tensor) -> tuple[list[Tensor], Tensor]:
    """The output, the last states and the gradients of the parameters; and the gradient of x."""
    x = x.clone().requires_grad_()
    result = network(x, lengths)
    states = result.states if hasattr(result, "states") else (result.state,)
    parts = [part for state in states if state is not None for part in state]
    used = [part.square().sum() for part in (result.output, *parts) if part.is_floating_point() and part.requires_grad]
    of_x, *gradients = torch.autograd.grad(sum(used), [x, *network.parameters()], allow_unused=True)
    return [result.output, *parts, *(gradient for gradient in gradients if gradient is not None)], of_x


def test_a_stack_has_a_state_for_each_layer() -> None:
    for stack in RecurrentStack("gru", SIZE, [HIDDEN] * 2), DilatedRNNStack(SIZE, [HIDDEN] * 2, [1, 2]):
        states = tuple(layer.initial_state(ROWS) for layer in stack.layers)
        for given in states[:1], (*states, states[1]):
            message = f"the stack has 2 layers, and there are {len(given)} states"
            with pytest.raises(ValueError, match=message):
                stack(torch.randn(STEPS, ROWS, SIZE), None, given)
            with pytest.raises(ValueError, match=message):
                stack.step(torch.randn(ROWS, SIZE), given)


def test_summaries_take_lengths_of_every_type_of_whole_numbers() -> None:
    layer, x, lengths = ConventionalRNN(SIZE, HIDDEN), torch.randn(STEPS, ROWS, SIZE), torch.tensor([5, 1, 0, 3])
    [expected] = layer.summaries(layer(x, lengths), lengths)
    for dtype in torch.uint8, torch.int16:
        [found] = layer.summaries(layer(x, lengths.to(dtype)), lengths.to(dtype))
        assert found.equal(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_and_autocast_go_on(kind: str) -> None:
    """Under autocast a state is of half precision, or not if no step has made it; so is the input."""
    x, network = torch.randn(STEPS, ROWS, SIZE), network_of(kind)
    start = network.initial_state(ROWS)
    expected = network(x).output
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        step, state, outputs = network.stepper(ROWS), start, []
        for x_t in x[0], x[1].bfloat16(), *x[2:]:
            output, state = step(x_t, state)
            outputs.append(output.float())
    torch.testing.assert_close(torch.stack(outputs), expected, rtol=0.1, atol=0.1)
    network = network.bfloat16()
    step, state, outputs = network.stepper(ROWS), network.initial_state(ROWS), []
    for x_t in x.bfloat16():
        output, state = step(x_t, state)
        outputs.append(output)
    found = torch.stack(outputs)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.1)


def test_a_step_is_checked_however_many_were_right() -> None:
    layer = MultiChannelRNN(SIZE, HIDDEN)
    step, state = layer.stepper(ROWS), layer.initial_state(ROWS)
    for _ in range(3):
        _, state = step(torch.randn(ROWS, SIZE), state)
    with pytest.raises(ValueError, match="the state has 4 rows, the input 3"):
        step(torch.randn(3, SIZE), state)
    with pytest.raises(ValueError, match="time of the state must be of int64, not of float32"):
        step(torch.randn(ROWS, SIZE), state._replace(time=state.time.float()))
    step(torch.randn(3, SIZE), layer.initial_state(3))


def test_a_state_may_be_more_precise_than_a_layer_in_half_precision() -> None:
    """As ``cuda_graph`` and RCRN return them."""
    layer = MultiChannelRNN(SIZE, HIDDEN).bfloat16()
    x, state = torch.randn(STEPS, ROWS, SIZE).bfloat16(), layer.initial_state(ROWS)
    expected = layer(x, None, state).output
    torch.testing.assert_close(layer(x, None, state._replace(cell_state=state.cell_state.float())).output, expected)
    with pytest.raises(ValueError, match="cell_state of the state must be of bfloat16, not of float64"):
        layer(x, None, state._replace(cell_state=state.cell_state.double()))


@pytest.mark.parametrize("fault", ["wider", "narrower", "rows", "one row", "precision", "device"])
@pytest.mark.parametrize("name", ["h0", "c0"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_state_starts_from_is_checked(kind: str, name: str, fault: str) -> None:
    network = network_of(kind)
    if name == "c0" and not network.has_cell_state:
        pytest.skip("the network has no cell state")
    right, wrong = torch.randn(ROWS, network.output_size), torch.randn(ROWS, network.output_size)
    if fault in ("wider", "narrower"):
        wrong = torch.randn(ROWS, network.output_size + (1 if fault == "wider" else -1))
    elif fault in ("rows", "one row"):
        wrong = wrong[: 1 if fault == "one row" else ROWS - 1]
    else:
        wrong = wrong.double() if fault == "precision" else wrong.to("meta")
    with pytest.raises(ValueError, match=f"^{name} must be (on|of) "):
        network.initial_state(ROWS, **{"h0": right, "c0": right, name: wrong})


def test_the_layer_of_the_page_passes_these_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/add_a_layer.md says that they take a layer of one's own."""
    kinds = dict(RECURRENT_KINDS)
    monkeypatch.setattr(registry, "RECURRENT_KINDS", kinds)
    monkeypatch.setattr(sys.modules[__name__], "RECURRENT_KINDS", kinds)
    page = CHECKOUT / "docs" / "add_a_layer.md"
    (code,) = (block.text for block in blocks(page) if block.file == "mine/leaky.py")
    exec(compile(code, "mine/leaky.py", "exec"), {"__name__": __name__})
    test_what_does_not_fit_is_said("leaky")
    for fault in "wider", "narrower", "rows", "one row", "precision", "device":
        test_what_a_state_starts_from_is_checked("leaky", "h0", fault)
    test_half_precision_and_autocast_go_on("leaky")
