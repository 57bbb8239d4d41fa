"""The parts ``layers`` and ``agreement`` of ``gpu.py``: each layer's time beside cuDNN's LSTM, and its errors."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import torch
from decoding import CELL, HIDDEN, ROWS, STEPS, cell_steps, layer_steps
from gpu_cells import PRECISIONS, Cell, Figure, Plan, on_backend, set_precision
from rcrn_and_dilated import one_pass
from recurrent_layers import SIZES
from timing import take_turns
from torch import Tensor, nn

from fairseq_plugins.kernels import dispatch
from fairseq_plugins.modules import (
    DilatedRNN,
    HigherOrderRNN,
    MultiChannelRNN,
    RecurrentlyControlledRNN,
    RecurrentNetwork,
)

LSTM, LSTM_3, BILSTM = "torch.nn.LSTM", "torch.nn.LSTM, 3 layers", "torch.nn.LSTM, 3 layers, two directions"
PEERS: dict[str, Callable[[int, int], nn.LSTM]] = {
    LSTM: nn.LSTM,
    LSTM_3: functools.partial(nn.LSTM, num_layers=3),
    BILSTM: functools.partial(nn.LSTM, num_layers=3, bidirectional=True),
}


class Candidate(NamedTuple):
    """A layer that is measured.

    Attributes:
        make: of input and hidden size.
        peers: of ``PEERS``.
        operation: whose backends it runs on; empty for none of ours.
        backends: those for GPUs, each measured.
        make_steppable: the same for decoding steps, where that is another layer.
        agreement: what of the sizes is another where it is compared with the reference.
    """

    make: Callable[[int, int], RecurrentNetwork]
    peers: tuple[str, ...]
    operation: str
    backends: tuple[str, ...]
    make_steppable: Callable[[int, int], RecurrentNetwork] | None = None
    agreement: Mapping[str, int] = {}


def _multi_channel(channels: int) -> Candidate:
    make = functools.partial(MultiChannelRNN, channels=channels)
    return Candidate(make, (LSTM, LSTM_3), "multi_channel", ("cuda_graph", "eager"))


CANDIDATES = {
    "MC-RNN-3": _multi_channel(3),
    "MC-RNN-2": _multi_channel(2),
    "MC-RNN-4": _multi_channel(4),
    "HO-RNN-3": Candidate(HigherOrderRNN, (LSTM, LSTM_3), "multi_channel", ("cuda_graph", "eager")),
    "RCRN": Candidate(
        RecurrentlyControlledRNN,
        (BILSTM,),
        "forget_scan",
        ("triton", "eager"),
        functools.partial(RecurrentlyControlledRNN, bidirectional=False),
        # The scan's reference is a loop over single numbers, whose gradients take minutes at the others' sizes.
        {"batch": 4, "input": 32, "hidden": 32},
    ),
    "DilatedRNN, dilation 4": Candidate(functools.partial(DilatedRNN, dilation=4), (LSTM,), "", ("",)),
}
# Relative errors, in the Euclidean norm, above which a result is called wrong.
LIMITS = {"fp32": 1e-4, "tf32": 1e-2, "bf16": 5e-2}


def layer_cells(plan: Plan) -> Iterator[Cell]:
    """Passes over sequences and decoding steps."""
    for size in ("tiny",) if plan.dry else ("translation", "language_model", "language_model_20"):
        shape = ", ".join(f"{what} {number}" for what, number in SIZES[size].items())
        for name, candidate in CANDIDATES.items():
            for precision in PRECISIONS[:1] if plan.dry else PRECISIONS:
                for backend in candidate.backends:
                    measure = functools.partial(passes, name, SIZES[size], precision, backend, plan)
                    yield Cell("layers", name, shape, precision, backend, measure)
        # After the size that counts most, before those that take longest.
        if size in ("tiny", "translation"):
            yield from _step_cells(plan)


def _step_cells(plan: Plan) -> Iterator[Cell]:
    hidden = SIZES["tiny"]["hidden"] if plan.dry else HIDDEN
    for name, candidate in CANDIDATES.items():
        for precision in PRECISIONS[:1] if plan.dry else PRECISIONS:
            # A scan has no step of its own.
            for backend in candidate.backends if candidate.operation == "multi_channel" else ("",):
                measure = functools.partial(decoding_steps, name, hidden, precision, backend, plan)
                yield Cell("layers", name, f"one decoding step, hidden {hidden}", precision, backend, measure)


def passes(name: str, size: dict[str, int], precision: str, backend: str, plan: Plan) -> list[Figure]:
    """Forward and backward, and forward alone, of one layer and its peers."""
    candidate = CANDIDATES[name]
    dtype = set_precision(precision)
    torch.manual_seed(1)
    layer = candidate.make(size["input"], size["hidden"]).to(plan.device, dtype)
    peers = {peer: PEERS[peer](size["input"], size["hidden"]).to(plan.device, dtype) for peer in candidate.peers}
    require_backend(candidate.operation, backend, layer, size["steps"] * size["batch"])
    x = torch.randn(size["steps"], size["batch"], size["input"], device=plan.device, dtype=dtype, requires_grad=True)
    figures = []
    for measured, is_training in (("forward and backward", True), ("forward", False)):
        runs = {
            **{title: one_pass(lambda x, peer=peer: peer(x)[0], x, is_training) for title, peer in peers.items()},
            name: one_pass(lambda x: layer(x).output, x, is_training),
        }
        timings = take_turns(runs, plan.layer_repetitions, plan.device)
        figures += [Figure.of_times(measured, timings, name, peer) for peer in peers]
    return figures


def decoding_steps(name: str, hidden: int, precision: str, backend: str, plan: Plan) -> list[Figure]:
    """One step, for the rows of a beam search of one sentence and of many, beside ``torch.nn.LSTMCell``."""
    candidate = CANDIDATES[name]
    dtype = set_precision(precision)
    figures = []
    for rows in ROWS:
        torch.manual_seed(1)
        layer = (candidate.make_steppable or candidate.make)(hidden, hidden).to(plan.device, dtype)
        if backend:
            require_backend(candidate.operation, backend, layer, rows)
        runs = {
            CELL: cell_steps(hidden, rows, plan.device, dtype),
            name: layer_steps(layer, rows, plan.device, dtype),
        }
        timings = take_turns(runs, plan.layer_repetitions, plan.device)
        figures.append(Figure.of_times(f"step of {rows} rows", timings, name, CELL, STEPS))
    return figures


def require_backend(operation: str, backend: str, layer: RecurrentNetwork, rows: int) -> None:
    """Looks whether the layer runs on the backend that FAIRSEQ_PLUGINS_BACKEND names.

    Raises:
        RuntimeError: another one would be measured in its place.
    """
    if not operation:
        return
    # A scan computes in float32 at least.
    of_what = (layer._layer(), rows) if operation == "multi_channel" else (next(layer.parameters()).float(),)
    choice = dispatch.choose(operation, *of_what)
    if choice.name != backend:
        raise RuntimeError(f"{choice.name} would run in its place: {choice.refused.get(backend, 'it comes first')}")


def agreement_cells(plan: Plan) -> Iterator[Cell]:
    """Errors of every layer on every backend, and of torch's LSTM as the yardstick."""
    # Longer than the dilation, so that every parameter has a gradient.
    size = {**SIZES["tiny"], "steps": 9} if plan.dry else {**SIZES["translation"], "batch": 32}
    for precision in ("fp32",) if plan.dry else ("fp32", "bf16", "tf32"):
        for name, candidate in CANDIDATES.items():
            cell_size = size if plan.dry else {**size, **candidate.agreement}
            shape = ", ".join(f"{what} {number}" for what, number in cell_size.items())
            for backend in candidate.backends:
                measure = functools.partial(errors, name, cell_size, precision, backend, plan)
                yield Cell("agreement", name, shape, precision, backend, measure)


def errors(name: str, size: dict[str, int], precision: str, backend: str, plan: Plan) -> list[Figure]:
    """Errors of output and gradients against the ``reference`` backend in float64 on the CPU, with the same (rounded)
    parameters and inputs; the ratio is to the error of ``torch.nn.LSTM`` against itself in float64."""
    candidate = CANDIDATES[name]
    dtype = set_precision(precision)
    torch.manual_seed(2)
    layer = candidate.make(size["input"], size["hidden"])
    lstm = nn.LSTM(size["input"], size["hidden"])
    for module in (layer, lstm):
        for parameter in module.parameters():
            # Some start as zeros, and would hide what they are multiplied with.
            nn.init.uniform_(parameter, -(size["hidden"] ** -0.5), size["hidden"] ** -0.5)
        module.to(plan.device, dtype)
    require_backend(candidate.operation, backend, layer, size["steps"] * size["batch"])
    x = torch.randn(size["steps"], size["batch"], size["input"]).to(dtype)
    lengths = torch.randint(1, size["steps"] + 1, (size["batch"],))
    lengths[0] = size["steps"]

    def run(layer: RecurrentNetwork, x: Tensor) -> Tensor:
        return layer(x, lengths.to(x.device)).output

    ours = _errors(layer, run, x, plan, reference="reference", backend=backend)
    yardstick = _errors(lstm, lambda lstm, x: lstm(x)[0], x, plan)
    figures = []
    for measured in ("output", "all gradients"):
        verdict = "" if ours[measured] <= LIMITS[precision] else ": DISAGREES"
        ratio = ours[measured] / yardstick[measured] if yardstick[measured] else None
        figures.append(Figure(f"error of {measured}{verdict}", ours[measured], "", None, ratio, LSTM))
    # Alone one may be a small difference of large numbers: that it is far off need not be wrong.
    single = {name: error for name, error in ours.items() if name not in ("output", "all gradients")}
    worst = max(single, key=lambda name: (math.isnan(single[name]), single[name]))
    return [*figures, Figure(f"error of the worst single gradient, that of {worst}", single[worst])]


def _errors(
    layer: nn.Module,
    run: Callable[[nn.Module, Tensor], Tensor],
    x: Tensor,
    plan: Plan,
    reference: str = "",
    backend: str = "",
) -> dict[str, float]:
    """Relative errors of the output, of all gradients together, and of each gradient."""
    gradient = None
    results = []
    for module, device, dtype, name in (
        (copy.deepcopy(layer), "cpu", torch.float64, reference),
        (layer, plan.device, x.dtype, backend),
    ):
        module = module.to(device, dtype)
        read = x.to(device, dtype, copy=True).requires_grad_()
        with on_backend(name):
            output = run(module, read)
            if gradient is None:
                gradient = torch.randn_like(output).to(x.dtype)
            inputs = {"x": read, **dict(module.named_parameters())}
            gradients = torch.autograd.grad(output, list(inputs.values()), gradient.to(device, output.dtype))
        results.append(
            {
                "output": output.flatten(),
                "all gradients": torch.cat([part.flatten() for part in gradients]),
                **{name: part.flatten() for name, part in zip(inputs, gradients, strict=True)},
            }
        )
    expected, actual = results
    return {name: _error(actual[name], value) for name, value in expected.items()}


def _error(actual: Tensor, expected: Tensor) -> float:
    difference = torch.linalg.vector_norm(actual.detach().cpu().double() - expected)
    size = torch.linalg.vector_norm(expected)
    return float(difference / size if size else difference)
