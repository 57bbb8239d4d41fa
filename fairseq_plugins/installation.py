"""``fairseq-plugins check``: what is installed, what each layer will run on, whether it computes what it should."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .command_parser import CommandParser
from .cpus import available_cpus
from .terminal import table
from .versions import VERSION, versions

if TYPE_CHECKING:
    from .modules import RecurrentKind, RecurrentNetwork

PACKAGES = ("torch", "numpy", "fairseq-fixed", "fairseq", "sentencepiece", "subword-nmt", "sacremoses", "sacrebleu")
FREE_GIGABYTES = 5
"""Less than this on a disk is warned of: checkpoints of the papers' models are some 300 MB each."""
TOLERANCE = 1e-3
"""How far results in float32 may be from the reference's, relative to the largest of them."""

_STEPS, _BATCH, _SIZE, _HIDDEN = 7, 3, 8, 8


def parser() -> CommandParser:
    """The command line."""
    return CommandParser(
        "check",
        "Checks an installation in some 20 seconds: versions, compiler, CPU, GPUs, free disk, which backend each "
        "recurrent layer runs on and why, and whether it computes what its reference does, forwards and backwards. It "
        "says what to do where something is wrong; the exit status is then 1. Compiling the C++ kernels, once, takes "
        "two minutes more; comparing those of a GPU, once, up to ten.",
    )


def main(arguments: Sequence[str]) -> None:
    """Prints what is found, a line each; the exit status is 1 where something does not work."""
    parser().parse_args(arguments)
    started = time.monotonic()
    problems = [*check_versions(), *check_disk(Path.cwd())]
    print("starting PyTorch and fairseq", flush=True)
    try:
        import torch  # noqa: F401 - whether it can be imported is the question
    except ImportError as error:
        problems.append(f"PyTorch cannot be imported ({error}): run scripts/install.sh")
    else:
        check_machine()
        problems += [*check_kernels(), *check_fairseq(), *check_layers()]
        check_gpu_kernels()
    print(f"\nchecked in {time.monotonic() - started:.0f} seconds")
    for problem in problems:
        print(f"problem: {problem}")
    if not problems:
        print("everything works")
    sys.exit(bool(problems))


def check_versions() -> list[str]:
    """Prints versions; returns what is missing, a sentence each."""
    installed = versions(PACKAGES)
    print(f"fairseq-plugins {VERSION}, " + ", ".join(f"{name} {number}" for name, number in installed.items()))
    required = [name for name in PACKAGES if not name.startswith("fairseq") and name not in installed]
    if "fairseq" not in installed and "fairseq-fixed" not in installed:
        required.append("fairseq-fixed")
    return [f"{name} is not installed: run scripts/install.sh" for name in required]


def check_disk(folder: Path) -> list[str]:
    """Prints how much is free where work folders go, and for temporary files."""
    problems = []
    for place in (folder, Path(os.environ.get("TMPDIR", "/tmp"))):
        free = shutil.disk_usage(place).free / 10**9
        print(f"disk: {free:,.1f} GB free in {place}")
        if free < FREE_GIGABYTES:
            problems.append(f"{place} has {free:,.1f} GB free: free some, or name another disk with --work or TMPDIR")
    return problems


def check_machine() -> None:
    """Prints the processor and the GPUs."""
    import torch

    capability = torch.backends.cpu.get_cpu_capability()
    print(f"CPU: {platform.machine()}, {capability}, {available_cpus()} cores, {torch.get_num_threads()} threads")
    count = torch.cuda.device_count()
    for number in range(count):
        properties = torch.cuda.get_device_properties(number)
        print(f"GPU {number}: {properties.name}, {properties.total_memory / 2**30:,.0f} GiB")
    if count == 0:
        built = f"PyTorch is built for CUDA {torch.version.cuda}" if torch.version.cuda else "PyTorch is built for CPUs"
        print(f"GPU: none that PyTorch sees ({built}); everything runs on the CPU")


def check_kernels() -> list[str]:
    """Prints the compiler and which kernels run; compiles what is not compiled yet, or has failed to.

    Returns:
        why those in C++ are off, a sentence for each reason; none where FAIRSEQ_PLUGINS_BACKEND has them off.
    """
    from .kernels import extension
    from .kernels.summary import summary

    with contextlib.suppress(RuntimeError):  # it is among the reasons
        extension.forget_failures()
        print(f"compiler: {shlex.join(extension.compiler())}; kernels are kept in {extension.cache_folder()}")
    print(summary())
    return [
        f"the C++ kernels are off, and MC-RNN, HO-RNN, RCRN and attention run several times slower: {reason}"
        for reason in extension.reasons()
    ]


def check_gpu_kernels() -> None:
    """Prints which kernels this machine's GPU has, and how fast; those that could not be used are tried again.

    None of them is a problem: another one runs in its place.
    """
    from .kernels import comparison
    from .kernels.verdicts import fastest

    verdicts = comparison.ensure(print, of_all=True)
    if verdicts is None:
        return
    rows = [
        {
            "operation": operation,
            "backend": name,
            "milliseconds": "" if verdict.seconds is None else f"{1000 * verdict.seconds:.2f}",
            "runs": "yes" if fastest(verdicts, operation) == name else verdict.problem or "no",
        }
        for operation, backends in verdicts.items()
        for name, verdict in backends.items()
    ]
    print(f"\nkernels on the GPU, each beside the reference:\n{table(rows)}")


def check_fairseq() -> list[str]:
    """Registers everything with fairseq."""
    from . import register

    try:
        register()
    except ImportError as error:
        return [f"fairseq cannot be imported ({error}): run scripts/install.sh"]
    from fairseq.models import ARCH_MODEL_REGISTRY

    print(f"fairseq: {len(ARCH_MODEL_REGISTRY):,} architectures")
    return []


def check_layers() -> list[str]:
    """Prints what each recurrent layer runs on, and how far it is from its reference, forwards and backwards."""
    from .modules import RECURRENT_KINDS

    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    notes: dict[str, str] = {}
    for name, kind in RECURRENT_KINDS.items():
        try:
            row, refused = check_layer(kind)
        except Exception as error:  # whatever it is, the other layers are looked at too
            problems.append(f"the layer {name} fails: {type(error).__name__}: {error}")
            continue
        rows.append(row)
        notes |= refused
        if not max(row["forward"], row["backward"]) <= TOLERANCE:
            problems.append(
                f"the layer {name} computes something else than its reference on {row['backend']}: delete the compiled "
                f"kernels (~/.cache/fairseq_plugins), or set FAIRSEQ_PLUGINS_BACKEND=eager"
            )
    shown = [{**row, **{way: f"{row[way]:.1e}" for way in ("forward", "backward")}} for row in rows]
    print("\nlargest difference from the reference, relative to the largest value:")
    print(table(shown) if shown else "no layer could be run")
    print("".join(f"not on {backend}: {reason}\n" for backend, reason in notes.items()), end="")
    return problems


def check_layer(kind: RecurrentKind) -> tuple[dict[str, Any], dict[str, str]]:
    """Runs a layer over random input of several lengths.

    Returns:
        its row of the table; and why it does not run on the backends that come before its own.
    """
    import torch

    from .modules import LayerSizes

    torch.manual_seed(1)
    network = kind.make(kind.options(), LayerSizes(_SIZE, (_HIDDEN,)))
    x = torch.randn(_STEPS, _BATCH, _SIZE)
    weights = torch.randn(_STEPS, _BATCH, network.output_size)
    with chosen_backends() as chosen:
        outputs = _run(network, x, weights, by_steps=False)
    refused = {backend: reason for choice in chosen for backend, reason in choice.refused.items()}
    with named_backend("reference"):
        expected = _run(network, x, weights, by_steps=network.is_steppable)
    return {
        "layer": kind.name,
        "backend": ", ".join(dict.fromkeys(choice.name for choice in chosen)) or "torch",
        "reference": "step by step" if network.is_steppable else "reference backend",
        "forward": _difference(outputs[:1], expected[:1]),
        "backward": _difference(outputs[1:], expected[1:]),
    }, refused


def _run(network: RecurrentNetwork, x: Any, weights: Any, by_steps: bool) -> list[Any]:
    """The outputs (T, B, ·), and the gradients of the input and of every parameter."""
    import torch

    x = x.clone().requires_grad_()
    if by_steps:
        state, outputs = network.initial_state(x.size(1)), []
        for step in x:
            output, state = network.step(step, state)
            outputs.append(output)
        output = torch.stack(outputs)
    else:
        output = network(x).output
    parameters = [x, *(parameter for parameter in network.parameters() if parameter.requires_grad)]
    gradients = torch.autograd.grad((output * weights).sum(), parameters, allow_unused=True)
    return [output.detach(), *(torch.zeros(1) if gradient is None else gradient for gradient in gradients)]


def _difference(outputs: Sequence[Any], expected: Sequence[Any]) -> float:
    # Relative to all of them: a gradient that is nearly zero has hardly a correct digit.
    scale = max(float(tensor.abs().max()) for tensor in expected)
    largest = max(float((one - other).abs().max()) for one, other in zip(outputs, expected, strict=True))
    return largest / max(scale, 1e-6)


@contextlib.contextmanager
def named_backend(name: str) -> Iterator[None]:
    """Has a backend run what it can, as FAIRSEQ_PLUGINS_BACKEND would."""
    from .kernels.dispatch import BACKEND_VARIABLE

    before = os.environ.get(BACKEND_VARIABLE)
    os.environ[BACKEND_VARIABLE] = name
    try:
        yield
    finally:
        del os.environ[BACKEND_VARIABLE]
        if before is not None:
            os.environ[BACKEND_VARIABLE] = before


@contextlib.contextmanager
def chosen_backends() -> Iterator[list[Any]]:
    """The :class:`.kernels.dispatch.Choice` of every operation that runs in the block."""
    from .kernels import dispatch

    choices, choose = [], dispatch.choose

    def remember(operation: str, *arguments: Any) -> dispatch.Choice:
        choices.append(choose(operation, *arguments))
        return choices[-1]

    dispatch.choose = remember
    try:
        yield choices
    finally:
        dispatch.choose = choose
