"""How much memory a training update takes, by model, tokens in a batch and vocabulary, beside fairseq's models.

    python benchmarks/memory.py [--systems ARCH ...] [--tokens 1000 4000 16000] [--types 8000 32000] [--threads 1]

The figure is the most memory that was resident at once during an update, above what was resident before it, in a
process of its own (VmHWM and VmRSS of /proc/self/status, of which the first is set back just before). An update on
two sentences goes first: parameters, gradients, momentum and libraries are there before, and do not count. What counts
are activations, gradients of them, the output layer's, and whatever the allocator loses. Where PyTorch runs on a GPU
``benchmarks/gpu.py`` asks it instead.

Updates are those of ``models.py``, which has the systems. --tokens are those of one side of a batch with its padding,
sentences are 20 to 25 tokens long. One of the two numbers is varied at a time: tokens with the first of --types, types
with the second of --tokens, or with the only one. Ratios are to fairseq's model of the sizes: ``lstm_as_rnnsearch`` for
recurrent models, ``transformer_as_dpn`` for DPN-S2S; below 1 is less memory.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch._dynamo  # a first optimizer step would import it, in each process anew
from models import LENGTHS, batch, model_of, task_of, training_step
from timing import at_least, versions, write_json

from fairseq_plugins.errors import InputError
from fairseq_plugins.tables.writing import markdown

RECURRENT_PEER, PEER = "lstm_as_rnnsearch", "transformer_as_dpn"
PEERS = {
    "rnnsearch_iwslt_de_en": RECURRENT_PEER,
    "mc_rnn_iwslt_de_en": RECURRENT_PEER,
    "dpn_iwslt_de_en": PEER,
    "dpn_checkpointed": PEER,
    RECURRENT_PEER: RECURRENT_PEER,
    PEER: PEER,
}
"""The models that are measured, and what each is compared to."""
MIB = 2**20
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
Result = TypeVar("Result")


class OverBudgetError(InputError):
    """A measurement took more of the processor's time than it was given."""


def alone(function: Callable[[], Result], budget: int | None = None) -> Result:
    """What a function returns in a process of its own, which is forked from this one.

    Args:
        function: what is called.
        budget: seconds of the processor that the process may take; None for any number.

    Raises:
        OverBudgetError: it took more.
        InputError: the process ended before it had a result.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        if budget is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (budget, budget + 1))
        sender.send(function())

    process = context.Process(target=run)
    process.start()
    sender.close()
    try:
        result: Result = receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            raise OverBudgetError(f"a measurement took more than {budget} s") from None
        raise InputError(
            f"a measurement ended with status {process.exitcode} (-9: the system was out of memory): ask for less"
        ) from None
    process.join()
    return result


def peak(run: Callable[[], object]) -> int:
    """The bytes that were resident during a call at most, above those that were before.

    Raises:
        InputError: the system does not say.
    """
    try:
        _CLEAR.write_text("5")
        before = _resident("VmRSS")
        run()
        return max(0, _resident("VmHWM") - before)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}; memory is measured on Linux") from None


def _resident(name: str) -> int:
    [line] = [line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


def update(system: str, sentences: int, lengths: tuple[int, int], types: int, threads: int) -> Callable[[], None]:
    """A training update that follows one on two sentences."""
    torch.set_num_threads(threads)
    task = task_of(system, types)
    model = model_of(system, task)
    training_step(model, task, batch(task, 2, "cpu"))()
    return training_step(model, task, batch(task, sentences, "cpu", lengths))


def sizes(tokens: list[int], types: list[int]) -> list[tuple[int, int]]:
    """Tokens and types, one of them varied at a time."""
    return [*((number, types[0]) for number in tokens), *((tokens[:2][-1], number) for number in types[1:])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--systems", nargs="+", choices=[*PEERS], default=[*PEERS], metavar="ARCH")
    parser.add_argument("--tokens", nargs="+", type=at_least(50), default=[1000, 4000, 16000])
    parser.add_argument("--types", nargs="+", type=at_least(5), default=[8000, 32000])
    parser.add_argument("--threads", type=at_least(1), default=1)
    parser.add_argument("--json", type=Path, help="write all figures to this file as well")
    args = parser.parse_args()
    environment = versions()
    print(
        ", ".join(f"{name} {version}" for name, version in environment.items()) + f", {args.threads} threads, float32\n"
    )
    rows: list[dict[str, Any]] = []
    columns = {"model": list(args.systems)}
    for tokens, types in sizes(args.tokens, args.types):
        sentences = tokens // LENGTHS[1]

        def measure(system: str, sentences: int = sentences, types: int = types) -> int:
            return alone(lambda: peak(update(system, sentences, LENGTHS, types, args.threads)))

        peaks = {system: measure(system) for system in args.systems}
        cells = []
        for system, size in peaks.items():
            of_peer = peaks.get(PEERS[system])
            ratio = size / of_peer if of_peer else None
            cells.append(f"{size / MIB:,.0f} MiB" + ("" if ratio is None else f", {ratio:.2f} x"))
            row = {"arch": system, "tokens": tokens, "types": types, "sentences": sentences, "threads": args.threads}
            rows.append({**row, "bytes": size, "peer": PEERS[system], "ratio_to_peer": ratio})
        columns[f"{tokens:,} tokens, {types:,} types"] = cells
    print("\n".join(markdown(columns)))
    write_json(args.json, environment, rows)


if __name__ == "__main__":
    main()
