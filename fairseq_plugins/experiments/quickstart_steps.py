"""What the quick starts share: steps whose commands are printed, trainings side by side, and sample sentences."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence

from tqdm import tqdm

from ..errors import InputError, last_words
from ..fairseq_program import environment
from ..samples import spread
from . import processes
from .fairseq_commands import option
from .training_statistics import parse_statistics

SAMPLES = 5


def heading(title: str) -> None:
    """Prints a step's title."""
    print(f"\n== {title} ==", flush=True)


def step(command: Sequence[object]) -> None:
    """Prints and runs one command, whose errors speak for themselves."""
    arguments = [str(part) for part in command]
    print(f"$ {processes.shown(arguments)}", flush=True)
    if status := subprocess.run(arguments, env=environment()).returncode:
        sys.exit(status)


def show_kernels() -> None:
    """Says on which kernels the trainings will run, and compiles them, so that not both trainings wait for it."""
    from ..kernels.summary import summary  # imports PyTorch

    print(summary(), flush=True)


def options_of_training(max_update: int | None, seed: int | None) -> list[object]:
    """What a quick start asks of each training beside its configuration.

    Args:
        max_update: after how many updates it stops; None for what the configuration says
        seed: None for the configuration's
    """
    given = {"--max-update": max_update, "--seed": seed}
    return [part for option, value in given.items() if value is not None for part in (option, value)]


def train_side_by_side(systems: dict[str, Sequence[object]], totals: dict[str, int]) -> None:
    """Runs one training command for each system at the same time, and shows how far they are.

    Args:
        systems: the command of each
        totals: for how many updates each trains, unless its command says ``--max-update``

    Raises:
        InputError: one of them failed; the others are stopped.
    """

    async def train_all() -> None:
        trainings = [
            asyncio.create_task(_train(name, [str(part) for part in command], totals[name], position))
            for position, (name, command) in enumerate(systems.items())
        ]
        try:
            await asyncio.gather(*trainings)
        finally:
            for training in trainings:
                training.cancel()
            await asyncio.gather(*trainings, return_exceptions=True)

    asyncio.run(train_all())


async def _train(name: str, command: list[str], total: int, position: int) -> None:
    """One training: a bar on a terminal, and a line at the end of each epoch."""
    tqdm.write(f"$ {processes.shown(command)}")
    total = int(option(command, "--max-update") or total)
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=1 << 20,
        env=environment(),
    )
    last_lines: list[str] = []
    bar = tqdm(desc=name, total=total, position=position, unit=" updates", disable=None, leave=False)
    try:
        while process.stdout and (raw := await process.stdout.readline()):
            line = raw.decode("utf-8", errors="replace")
            last_lines = [*last_lines[-30:], line]
            statistics = parse_statistics(line)
            if statistics is None:
                continue
            done = int(statistics["num_updates"])
            bar.update(done - bar.n)
            if statistics["split"] == "valid":
                measure = "accuracy" if "accuracy" in statistics else "ppl"
                label = "perplexity" if measure == "ppl" else measure
                tqdm.write(f"{name}: {done:,} of {total:,} updates, development {label} {statistics[measure]:.2f}")
        status = await process.wait()
    finally:
        bar.close()
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()
    if status != 0:
        raise InputError(f"{name}: {command[0]} ended with exit status {status}: {last_words(last_lines)}")


def show_samples(lines: dict[str, list[str]]) -> None:
    """Some sentences of the test set, spread over it, with everything that was made of them."""
    heading("Samples of the test set")
    count = len(next(iter(lines.values())))
    width = max(map(len, lines))
    for number in spread(count, SAMPLES):
        print("\n".join(f"{name:>{width}}  {sentences[number]}" for name, sentences in lines.items()), end="\n\n")
