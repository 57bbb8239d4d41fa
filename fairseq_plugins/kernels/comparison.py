"""Compares the backends for GPUs with the reference on this machine's GPU, and times them, in a process of its own.

    python -m fairseq_plugins.kernels.comparison DEVICE OPERATION=BACKEND [OPERATION=BACKEND ...]

It writes a line of JSON for each: an operation's results in float32 and bfloat16, of odd sizes and lengths, with all
gradients, are held to those of ``reference.py`` in float64 on the CPU; then the passes of a training are timed. A
backend that crashes, or that hangs, takes the process with it: :func:`compare` begins another for the rest.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..files import locked
from . import dispatch, verdicts
from .decoder_loop import DecoderLoop, Tensors
from .multi_channel.specification import (
    MultiChannelLayer,
    MultiChannelParameters,
    MultiChannelSpecification,
    MultiChannelState,
    initial_state,
)
from .padding import padding_mask
from .verdicts import FALLBACK, Verdict, Verdicts

logger = logging.getLogger(__name__)

SECONDS, SECONDS_OF_ALL = 90.0, 600.0
"""What a comparison may take before a training, and of all backends, in ``fairseq-plugins check``."""
REPETITIONS = 5
LIMITS = {torch.float32: 1e-3, torch.bfloat16: 5e-2}
"""How far a result may be from the reference's, relative to the largest number of its tensor; in bfloat16, where some
gradients have hardly a correct digit, four times as far as :data:`FALLBACK` is, if that is more."""
_OF_FALLBACK = 4.0


class Problem(NamedTuple):
    """What an operation is tried with: tensors in float64 on the CPU, and what is computed of them.

    Attributes:
        name: what a message calls it.
        dtype: the precision that it is tried in.
        inputs: those with gradients, by name.
        run: of a backend and of the inputs, where and in the precision that it is tried: the results.
    """

    name: str
    dtype: torch.dtype
    inputs: dict[str, Tensor]
    run: Callable[[ModuleType, dict[str, Tensor]], list[Tensor]]


class Operation(NamedTuple):
    """How backends of an operation are compared: what must agree, and what is timed."""

    problems: Callable[[], Iterator[Problem]]
    timed: Callable[[], Iterator[Problem]]


def ensure(say: Callable[[str], object] = logger.info, of_all: bool = False) -> Verdicts | None:
    """What this machine's GPU says of its backends; it is asked now if it never was. None without a GPU.

    Args:
        say: is given a line where it is asked, and a sentence for each backend that cannot be used.
        of_all: of those too that start slowly; it is asked again where it was not, or where one cannot be used.
    """
    machine = verdicts.identity()
    if machine is None:
        return None
    gpu_verdicts = verdicts.load(machine)
    if gpu_verdicts is not None and not (of_all and (problems_of(gpu_verdicts) or _lacks_one(gpu_verdicts))):
        return gpu_verdicts
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, RuntimeError):
            # One of several processes that begin beside each other.
            path = verdicts.path_of(machine)
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(path.with_suffix(".lock")))
        # Another process may have asked meanwhile.
        gpu_verdicts = None if of_all else verdicts.load(machine)
        if gpu_verdicts is None:
            seconds = SECONDS_OF_ALL if of_all else SECONDS
            say(f"kernels: comparing those for {machine['gpu']}, once; it takes up to {seconds:.0f} seconds")
            gpu_verdicts = compare("cuda", seconds, of_all)
            verdicts.save(machine, gpu_verdicts)
            for sentence in problems_of(gpu_verdicts):
                say(sentence)
    return gpu_verdicts


def compare(device: str, seconds: float, of_all: bool, program: Sequence[str] = ()) -> Verdicts:
    """Runs the comparison in processes of its own.

    Args:
        device: ``cuda``.
        seconds: for all of them.
        of_all: of those too that start slowly.
        program: what is run with the arguments of this module; this module itself where nothing is given.
    """
    program = program or [sys.executable, "-m", __name__]
    end = time.monotonic() + seconds
    gpu_verdicts: Verdicts = {}
    waiting = candidates(of_all)
    while waiting:
        left = max(0.0, end - time.monotonic())
        answers, ended = _run([*program, device, *map("=".join, waiting)], left)
        for (operation, backend), verdict in answers.items():
            gpu_verdicts.setdefault(operation, {})[backend] = verdict
        waiting = [candidate for candidate in waiting if candidate not in answers]
        if waiting:
            # The first one that has no answer ended the process, or had no time.
            operation, backend = waiting.pop(0)
            ended = ended or f"it took longer than the {seconds:.0f} seconds that a comparison has"
            gpu_verdicts.setdefault(operation, {})[backend] = Verdict(None, ended)
    return gpu_verdicts


def candidates(of_all: bool = True) -> list[tuple[str, str]]:
    """Operations with each of their backends for GPUs, and before them what they have to be faster than.

    Args:
        of_all: those too that start slowly.
    """
    return [
        (operation, name)
        for operation, backends in dispatch.OPERATIONS.items()
        if (measured := [one.name for one in backends if one.is_measured and (of_all or not one.starts_slowly)])
        for name in (FALLBACK, *measured)
    ]


def _lacks_one(gpu_verdicts: Verdicts) -> bool:
    return any(name not in gpu_verdicts.get(operation, {}) for operation, name in candidates())


def problems_of(gpu_verdicts: Verdicts) -> list[str]:
    """A sentence for each backend that cannot be used."""
    return [
        f"kernels: {operation} does not run on {name} here, but on {verdicts.fastest(gpu_verdicts, operation)}: "
        f"{verdict.problem}"
        for operation, backends in gpu_verdicts.items()
        for name, verdict in backends.items()
        if verdict.problem
    ]


def _run(command: Sequence[str], seconds: float) -> tuple[dict[tuple[str, str], Verdict], str]:
    """What a process wrote, and why it ended before it had written all; nothing where it had no more time."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output, tempfile.TemporaryFile("w+b") as errors:
        # Where fairseq has found this package by --user-dir, another process would not.
        search_path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": search_path},
        )
        try:
            status = process.wait(seconds)
            ended = _words(errors) if status > 0 else f"it crashed ({_signal(-status)})"
        except subprocess.TimeoutExpired:
            ended = ""
        finally:
            # With what it has started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        answers = {}
        for line in output:
            with contextlib.suppress(ValueError, KeyError):
                answer = json.loads(line)
                answers[answer["operation"], answer["backend"]] = Verdict(answer["seconds"], answer["problem"])
        return answers, ended


def _words(errors: Any) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it ended without a word"


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


# ------------------------------------------------------------------------------------------------ in the other process


def main(arguments: Sequence[str]) -> None:
    """Writes a line for each backend, as soon as it is known."""
    device, *operations_and_backends = arguments
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for candidate in operations_and_backends:
        operation, _, backend = candidate.partition("=")
        seconds, problem = judge(operation, backend, device)
        answer = {"operation": operation, "backend": backend, "seconds": seconds, "problem": problem}
        print(json.dumps(answer), flush=True)


def judge(operation: str, name: str, device: str) -> Verdict:
    """Compares and times a backend."""
    backends = {backend.name: backend for backend in dispatch.OPERATIONS[operation]}
    try:
        fallback, module = (dispatch.module_of(backends[wanted]) for wanted in (FALLBACK, name))
        for problem, expected in _expected(operation):
            is_reduced = problem.dtype != torch.float32
            if is_reduced and name == FALLBACK:
                continue  # it is what others are held to
            errors = _errors(_results(problem, module, device, problem.dtype), expected)
            limits = [LIMITS[problem.dtype]] * len(errors)
            if is_reduced:
                of_fallback = _errors(_results(problem, fallback, device, problem.dtype), expected)
                limits = [max(limit, _OF_FALLBACK * error) for limit, error in zip(limits, of_fallback, strict=True)]
            if any(error > limit for error, limit in zip(errors, limits, strict=True)):
                largest = f"{problem.name}: {max(errors):.1e}"
                return Verdict(None, f"it computes something else than the reference ({largest})")
        return Verdict(sum(_seconds(problem, module, device) for problem in OPERATIONS[operation].timed()))
    except Exception as error:  # whatever it is, the other backends are looked at too
        first = (str(error).strip().splitlines() or [""])[0]
        return Verdict(None, f"{type(error).__name__}: {first}"[:300])


@functools.cache
def _expected(operation: str) -> list[tuple[Problem, list[Tensor]]]:
    """What an operation is tried with, and the reference's results."""
    backends = {backend.name: backend for backend in dispatch.OPERATIONS[operation]}
    reference = dispatch.module_of(backends["reference"])
    return [
        (problem, _results(problem, reference, "cpu", torch.float64)) for problem in OPERATIONS[operation].problems()
    ]


def _results(problem: Problem, module: ModuleType, device: str, dtype: torch.dtype) -> list[Tensor]:
    """What a backend returns, and all gradients; in float64 on the CPU."""
    inputs = {
        # Rounded as the backend that is compared reads them.
        name: tensor.to(problem.dtype).to(device, dtype).requires_grad_()
        for name, tensor in problem.inputs.items()
    }
    results = problem.run(module, inputs)
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(result.shape, generator=generator, dtype=torch.float64).to(result) for result in results]
    gradients = torch.autograd.grad(results, list(inputs.values()), weights, allow_unused=True)
    tensors = [*results, *(gradient for gradient in gradients if gradient is not None)]
    return [tensor.detach().to("cpu", torch.float64) for tensor in tensors]


def _errors(results: Sequence[Tensor], expected: Sequence[Tensor]) -> list[float]:
    """The largest difference of each tensor, relative to its largest number; infinite where it is none, or they do not
    fit."""
    if [tensor.shape for tensor in results] != [tensor.shape for tensor in expected]:
        return [math.inf] * len(expected)
    errors = [
        float((one - other).abs().max() / other.abs().max().clamp(min=1e-6))
        for one, other in zip(results, expected, strict=True)
    ]
    return [math.inf if math.isnan(error) else error for error in errors]


def _seconds(problem: Problem, module: ModuleType, device: str) -> float:
    """The median of some passes forwards and backwards, after two that compile."""
    inputs = {name: tensor.to(device, problem.dtype).requires_grad_() for name, tensor in problem.inputs.items()}
    times = []
    for _ in range(2 + REPETITIONS):
        _wait(device)
        started = time.perf_counter()
        results = problem.run(module, inputs)
        torch.autograd.grad([result.sum() for result in results], list(inputs.values()), allow_unused=True)
        _wait(device)
        times.append(time.perf_counter() - started)
    return statistics.median(times[2:])


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


# ------------------------------------------------------------------------------------------------------- what is tried


def _random(generator: torch.Generator, *shape: int, scale: float = 1.0) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64) * scale


def _multi_channel(
    specification: MultiChannelSpecification,
    sizes: tuple[int, int, int, int],
    lengths: Sequence[int] | None,
    dtype: torch.dtype,
    steps: int,
) -> Problem:
    """A sequence, another that goes on from its state, and single steps.

    Args:
        specification: of the layer.
        sizes: T, B, D, H.
        lengths: of the rows; None for all of T.
        dtype: what it is tried in.
        steps: how many single ones.
    """
    time_steps, rows, width, hidden = sizes
    generator = torch.Generator().manual_seed(0)
    gates, connected = specification.gates * hidden, specification.connection == "state"
    scale = hidden**-0.5
    inputs = {
        "weight_ih": _random(generator, gates, width, scale=width**-0.5),
        **({"weight_hh": _random(generator, gates, hidden, scale=scale)} if connected else {}),
        "bias_ih": _random(generator, gates, scale=0.1),
        "bias_hh": _random(generator, gates, scale=0.1),
        "weight_connection": _random(
            generator, len(specification.lags), hidden if connected else gates, hidden, scale=scale
        ),
        "x": _random(generator, time_steps, rows, width),
    }
    if specification.has_attention:
        inputs |= {
            "attention_v": _random(generator, hidden, hidden + width, scale=scale),
            "attention_r": _random(generator, hidden),
        }
    whole = None if lengths is None else torch.tensor(lengths)

    def run(module: ModuleType, tensors: dict[str, Tensor]) -> list[Tensor]:
        parameters = MultiChannelParameters._make(tensors.get(name) for name in MultiChannelParameters._fields)
        layer, x = MultiChannelLayer(specification, parameters), tensors["x"]
        reason = module.refuses(layer, time_steps * rows)
        if reason is not None:
            raise RuntimeError(reason)
        of_rows = None if whole is None else whole.to(x.device)
        if of_rows is not None:
            x = x.masked_fill(padding_mask(of_rows, time_steps).unsqueeze(-1), 0)
        first = module.multi_channel_rnn(layer, x, of_rows, initial_state(layer, rows))
        second = module.multi_channel_rnn(layer, x.flip(0), None, first.state)
        results = [first.output, second.output, *_floating(second.state)]
        state, step = second.state, module.stepper(layer, rows)
        for row in x.unbind(0)[:steps]:
            output, state = step(row, state)
            results.append(output)
        return [*results, *_floating(state)]

    named = f"{specification.cell}, {specification.connection}, {str(dtype).removeprefix('torch.')}, {sizes}"
    return Problem(named, dtype, inputs, run)


def _floating(state: MultiChannelState) -> list[Tensor]:
    # Cells other than the LSTM have nothing in theirs.
    return [tensor for tensor in state if tensor.is_floating_point() and tensor.numel()]


def _multi_channel_problems() -> Iterator[Problem]:
    small, odd = (7, 3, 5, 7), (13, 5, 33, 63)
    for cell in ("lstm", "gru", "rnn"):
        for connection in ("state", "gate"):
            specification = MultiChannelSpecification.multi_channel(cell, connection, 3)
            yield _multi_channel(specification, small, [7, 0, 4], torch.float32, steps=3)
    higher = MultiChannelSpecification.higher_order("lstm", "state", (1, 3))
    yield _multi_channel(higher, small, [7, 1, 4], torch.float32, steps=3)
    for dtype in LIMITS:
        for cell in ("lstm", "gru"):
            specification = MultiChannelSpecification.multi_channel(cell, "state", 3)
            yield _multi_channel(specification, odd, [13, 1, 8, 0, 13], dtype, steps=3)


def _multi_channel_timed() -> Iterator[Problem]:
    specification = MultiChannelSpecification.multi_channel("lstm", "state", 3)
    for dtype in LIMITS:
        yield _multi_channel(specification, (25, 160, 256, 256), None, dtype, steps=25)


def _scan(sizes: tuple[int, int, int]) -> Problem:
    """Eq. 15 of RCRN; ``forget_scan`` computes in float32 at least, whatever it is given."""
    generator = torch.Generator().manual_seed(0)
    inputs = {
        "gate": torch.rand(sizes, generator=generator, dtype=torch.float64),
        "candidate": _random(generator, *sizes),
        "initial": _random(generator, *sizes[1:]),
    }

    def run(module: ModuleType, tensors: dict[str, Tensor]) -> list[Tensor]:
        reason = module.refuses(tensors["gate"])
        if reason is not None:
            raise RuntimeError(reason)
        return [module.forget_scan(**tensors)]

    return Problem(f"scan, float32, {sizes}", torch.float32, inputs, run)


class _Owner:
    """Of a loop that is compared."""


def _decoder_loop(sizes: tuple[int, int, int, int], dtype: torch.dtype) -> Problem:
    """A recurrence whose input is what it attends to with its last output, twice, with fewer rows the second time.

    Args:
        sizes: T, B, S, H.
        dtype: what it is tried in.
    """
    steps, rows, positions, hidden = sizes
    generator = torch.Generator().manual_seed(0)
    inputs = {
        "x": _random(generator, steps, rows, hidden),
        "start": _random(generator, rows, hidden),
        "keys": _random(generator, rows, positions, hidden),
        "weight": _random(generator, hidden, 3 * hidden, scale=hidden**-0.5 / 2),
        "bias": _random(generator, hidden, scale=0.1),
    }
    owner = _Owner()

    def loop(inputs: Tensors, state: Tensors, constants: Tensors, parameters: Tensors) -> tuple[Tensors, Tensors]:
        (x,), (h,), (keys,), (weight, bias) = inputs, state, constants, parameters
        outputs = []
        for row in x.unbind(0):
            weights = torch.softmax(torch.einsum("bh,bsh->bs", h, keys), dim=-1)
            context = torch.einsum("bs,bsh->bh", weights, keys)
            h = torch.tanh(torch.nn.functional.linear(torch.cat([row, context, h], dim=-1), weight, bias))
            outputs.append(h)
        return (torch.stack(outputs),), (h,)

    def run(module: ModuleType, tensors: dict[str, Tensor]) -> list[Tensor]:
        reason = module.refuses(tensors["x"])
        if reason is not None:
            raise RuntimeError(reason)
        parameters = tensors["weight"], tensors["bias"]
        results = []
        for given in rows, max(rows - 2, 1):
            state, constants = (tensors["start"][:given],), (tensors["keys"][:given],)
            of_loop = DecoderLoop(owner, None, loop)
            results += module.decoder_loop(of_loop, (tensors["x"][:, :given],), state, constants, parameters)
        return results

    return Problem(f"decoder loop, {str(dtype).removeprefix('torch.')}, {sizes}", dtype, inputs, run)


OPERATIONS = {
    "decoder_loop": Operation(
        lambda: (_decoder_loop(sizes, dtype) for dtype in LIMITS for sizes in ((5, 3, 4, 7), (19, 9, 5, 33))),
        lambda: iter([_decoder_loop((25, 160, 24, 256), torch.bfloat16)]),
    ),
    "multi_channel": Operation(_multi_channel_problems, _multi_channel_timed),
    "forget_scan": Operation(
        lambda: (_scan(sizes) for sizes in ((7, 3, 5), (1, 2, 129), (33, 5, 31))), lambda: iter([_scan((64, 32, 200))])
    ),
}
"""Those that have backends for GPUs."""


if __name__ == "__main__":
    # As the module that others import, whose table of backends this one may change.
    importlib.import_module("fairseq_plugins.kernels.comparison").main(sys.argv[1:])
