"""Commands and trainings side by side: how far each is, when it ends, and a sentence that they learn to translate."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tqdm import tqdm

from ..errors import InputError, last_words
from ..fairseq_program import environment
from .fairseq_commands import option
from .processes import shown
from .run import Run
from .training_statistics import follow_statistics

SECONDS_BETWEEN_LINES = 30
"""Of progress, where there is no terminal to draw a bar on."""


def steps_side_by_side(commands: Sequence[Sequence[object]]) -> None:
    """Runs commands at the same time, and shows what each printed below it."""
    texts = [[str(part) for part in command] for command in commands]
    running = [
        subprocess.Popen(
            text,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        for text in texts
    ]
    try:
        for text, process in zip(texts, running, strict=True):
            print(f"$ {shown(text)}", flush=True)
            output, _ = process.communicate()
            print(output, end="", flush=True)
            if process.returncode:
                sys.exit(process.returncode)
    finally:
        for process in running:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def kernels_compiled() -> Iterator[None]:
    """Compiles the kernels beside what is done within, and says at its end on which ones the trainings will run.

    So neither training waits for it.
    """
    # Of what they need, the search alone is in no summary.
    program = (
        "from threading import Thread; from fairseq_plugins.kernels.best_tokens import cpu; "
        "Thread(target=cpu.compiled).start(); "
        "from fairseq_plugins.kernels.summary import summary; print(summary())"
    )
    compiling = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=environment(),
    )
    try:
        yield
        output, _ = compiling.communicate()
        print(output, end="", flush=True)
        if compiling.returncode:
            sys.exit(compiling.returncode)
    finally:
        compiling.terminate()
        compiling.wait()


class WatchedPair(NamedTuple):
    """A pair of the development set whose translation is shown while the models learn."""

    source: str
    reference: str


def train_side_by_side(
    systems: dict[str, Sequence[object]], totals: dict[str, int], watched: WatchedPair | None = None
) -> None:
    """Runs one training command for each system at the same time, and shows how far they are.

    Args:
        systems: the command of each
        totals: for how many updates each trains, unless its command says ``--max-update``
        watched: what each checkpoint translates; None where there is nothing to translate

    Raises:
        InputError: one of them failed; the others are stopped.
    """
    if watched is not None:
        print(f"Watch this one: {watched.source}\n  It means: {watched.reference}")

    async def train_all() -> None:
        # One at a time: what decodes is not made for several threads.
        with ThreadPoolExecutor(1) as watcher:

            def watch(name: str, run: Run, done: int) -> None:
                if watched is not None:
                    watcher.submit(_show_translation, name, run, done, watched.source)

            trainings = [
                asyncio.create_task(_train(name, [str(part) for part in command], totals[name], position, watch))
                for position, (name, command) in enumerate(systems.items())
            ]
            try:
                await asyncio.gather(*trainings)
            finally:
                for training in trainings:
                    training.cancel()
                await asyncio.gather(*trainings, return_exceptions=True)
                watcher.shutdown(cancel_futures=True)

    asyncio.run(train_all())


def _show_translation(name: str, run: Run, done: int, source: str) -> None:
    """Shows what a training's last checkpoint makes of a sentence."""
    from ..decoding.translation import load  # imports PyTorch and fairseq

    try:
        [translation] = load(run.last_checkpoint).translate([source])
    except Exception as error:  # to watch is no reason to stop
        translation = f"(cannot be translated: {error})"
    tqdm.write(f"{name} after {done:,} updates: {translation}")


class Progress:
    """How far a training is, and when it will end.

    Args:
        name: of the system
        total: for how many updates it trains
    """

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._first: tuple[float, int] | None = None
        self._now = (0.0, 0)

    @property
    def done(self) -> int:
        """Updates."""
        return self._now[1]

    def reached(self, done: int) -> None:
        """Says that so many updates are done now."""
        self._now = (time.monotonic(), done)
        self._first = self._first or self._now

    def line(self) -> str:
        """``MC-RNN-3: 600 of 1,000 updates, 1.1 minutes to go``."""
        (started, before), (now, done) = self._first or self._now, self._now
        line = f"{self._name}: {done:,} of {self._total:,} updates"
        if done == before:
            return line
        return f"{line}, {(self._total - done) * (now - started) / (done - before) / 60:.1f} minutes to go"


async def _lines_of_progress(progress: Progress) -> None:
    while True:
        await asyncio.sleep(SECONDS_BETWEEN_LINES)
        print(progress.line(), flush=True)


async def _train(
    name: str, command: list[str], total: int, position: int, watch: Callable[[str, Run, int], None]
) -> None:
    """One training: a bar on a terminal or else a line every half minute, and a line at each validation.

    Args:
        name: of the system
        command: that trains it
        total: for how many updates
        position: of its bar
        watch: called when there is a checkpoint
    """
    tqdm.write(f"$ {shown(command)}")
    total = int(option(command, "--max-update") or total)
    run = Run(str(option(command, "--work")))
    new_statistics = follow_statistics(run.statistics)
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=1 << 20,
        env=environment(),
    )
    last_lines: list[str] = []
    bar = tqdm(desc=name, total=total, position=position, unit=" updates", disable=None, leave=False)
    progress, lines = Progress(name, total), None
    if bar.disable:
        lines = asyncio.create_task(_lines_of_progress(progress))
    try:
        while process.stdout and (raw := await process.stdout.readline()):
            last_lines = [*last_lines[-30:], raw.decode("utf-8", errors="replace")]
            if "Saved checkpoint" in last_lines[-1]:
                watch(name, run, progress.done)
            for statistics in new_statistics():
                done = int(statistics["num_updates"])
                bar.update(done - bar.n)
                progress.reached(done)
                if statistics["split"] == "valid":
                    measure = "accuracy" if "accuracy" in statistics else "ppl"
                    label = "perplexity" if measure == "ppl" else measure
                    tqdm.write(f"{name}: {done:,} of {total:,} updates, development {label} {statistics[measure]:.2f}")
        status = await process.wait()
    finally:
        bar.close()
        if lines is not None:
            lines.cancel()
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()
    if status != 0:
        raise InputError(f"{name}: {command[0]} ended with exit status {status}: {last_words(last_lines)}")
