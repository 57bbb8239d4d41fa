"""``scripts/quickstart.sh``: MC-RNN and RNNSearch trained side by side on a built-in corpus, scored and tried out.

Every step is one of the scripts that a user's own experiment takes; the commands are printed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from ..corpora.builtin import SUFFIXES, TEXT
from ..errors import InputError
from ..files import read_lines
from ..scoring.metrics import Outputs, metric_named
from ..terminal import table
from . import configuration as configurations
from . import processes, results
from .command_line import ScriptParser, builtin_corpus, main_of, script
from .configuration import CHECKOUT
from .decoding import decoding_of
from .fairseq_commands import option
from .prepared_data import PreparedData
from .train import parse_statistics

SYSTEMS = {"MC-RNN-3": "mc_rnn_3", "RNNSearch": "rnnsearch"}
SAMPLES = 5
LEAD = 8


@dataclass(frozen=True)
class Task:
    """What differs between the built-in corpora."""

    preparation: tuple[object, ...]
    """Options of scripts/prepare_parallel.sh."""
    configurations: str
    """The folder below ``configs``, and the work folder."""
    names: tuple[str, str]
    """What a source and the baseline are called."""
    sentence: str
    """What the trained model is tried on."""


TASKS = {
    "translation": Task(
        preparation=("--tokenizer", "moses", "--bpe-size", 3000),
        configurations="quickstart",
        names=("German", "word for word"),
        sentence="Der Hund, den meine Schwester gefunden hat, ist sehr klug.",
    ),
    "summarization": Task(
        preparation=("--tokenizer", "moses", "--lowercase", "--bpe-size", 1500, "--metric", "rouge"),
        configurations="quickstart_summarization",
        names=("article", f"first {LEAD} words"),
        sentence="Shares on the stock exchange in Tokyo closed sharply lower on Monday as investors feared weak "
        "company profits, dealers said.",
    ),
}


def main(arguments: list[str]) -> None:
    """The whole quick start."""
    parser = ScriptParser("quickstart")
    parser.add_argument("--task", choices=(*TASKS, TEXT), default="translation")
    parser.add_argument("--sentence")
    parser.add_argument("--max-update", type=int)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args(arguments)
    if options.max_update is not None and options.max_update < 1:
        raise InputError(f"--max-update is {options.max_update}; it must be at least 1")
    # One thread for each of the two trainings; more would only get into each other's way.
    os.environ["OMP_NUM_THREADS"] = "1"
    started = time.monotonic()
    if options.task == TEXT:
        from .quickstart_language_model import CONFIGURATIONS, run

        work = Path(os.path.abspath(options.work or CHECKOUT / "work" / CONFIGURATIONS))
        run(work, options.max_update, options.sentence)
        print(f"\nDone in {(time.monotonic() - started) / 60:.1f} minutes. Checkpoints, logs and results.json: {work}")
        return
    task = TASKS[options.task]
    work = Path(os.path.abspath(options.work or CHECKOUT / "work" / task.configurations))

    text, data = work / "text", work / "data"
    heading("A corpus from a grammar: sentences, tokens, BPE")
    for command in builtin_corpus(options.task, text, data, task.preparation):
        step(command)

    heading("Training both models, one thread each")
    limit = [] if options.max_update is None else ["--max-update", options.max_update]
    places = {name: ["--work", work / model, "--data", data, "--gpus", 0] for name, model in SYSTEMS.items()}
    train_side_by_side(
        {name: [script("train"), preset(task, name), *place, *limit] for name, place in places.items()},
        {name: updates(task, name) for name in SYSTEMS},
    )

    heading("Translating the test set" if options.task == "translation" else "Writing headlines for the test set")
    for name, place in places.items():
        step([script("evaluate"), preset(task, name), *place])

    source, target = SUFFIXES[options.task]
    output = f"test.{target}"
    written = {name: list(read_lines(work / model / "generate" / output)) for name, model in SYSTEMS.items()}
    sources = list(read_lines(data / "raw" / f"test.{source}"))
    if options.task == "translation":
        baseline = list(read_lines(text / "test.word_for_word.en"))
    else:
        baseline = [" ".join(line.split()[:LEAD]) for line in sources]
    references = list(read_lines(data / "raw" / output))
    show_samples({task.names[0]: sources, "reference": references, task.names[1]: baseline, **written})
    heading("Scores on the test set")
    works = {task.names[1]: work / task.names[1].replace(" ", "_")}
    score(works[task.names[1]], PreparedData.load(data), baseline)
    works |= {name: work / model for name, model in SYSTEMS.items()}
    rows, explanations = results.overview(works)
    print(table(rows), *explanations, sep="\n")

    heading("A report")
    page = work / "report.html"
    step(
        [script("report"), *(f"{name}={folder}" for name, folder in works.items()), "--output", page]
        + ["--title", f"Quick start: {options.task}", "--subtitle", "MC-RNN and RNNSearch on the built-in corpus"]
        + ["--notice", "A grammar made this corpus: it shows that everything works, and not which model is better."]
    )

    heading("Your sentence")
    checkpoint = work / SYSTEMS["MC-RNN-3"] / "checkpoints" / "checkpoint_best.pt"
    command = [script("translate"), str(checkpoint)]
    sentence = options.sentence or task.sentence
    print(f"$ echo {processes.shown([sentence])} | {processes.shown(command)}", flush=True)
    translated = subprocess.run(command, input=sentence + "\n", stdout=subprocess.PIPE, text=True)
    if translated.returncode != 0:
        sys.exit(translated.returncode)
    print(translated.stdout, end="")
    print(f"\nDone in {(time.monotonic() - started) / 60:.1f} minutes. Checkpoints, logs and results.json: {work}")
    print(f"The report, with learning curves and what the models attended to: {page}")


def heading(title: str) -> None:
    """Prints a step's title."""
    print(f"\n== {title} ==", flush=True)


def preset(task: Task, system: str) -> str:
    """The path of a system's configuration."""
    return str(CHECKOUT / "configs" / task.configurations / f"{SYSTEMS[system]}.yaml")


def updates(task: Task, system: str) -> int:
    """For how many updates a system's configuration trains."""
    return int(configurations.load(preset(task, system)).train["max-update"].text)


def step(command: Sequence[object]) -> None:
    """Prints and runs one command, whose errors speak for themselves."""
    arguments = [str(part) for part in command]
    print(f"$ {processes.shown(arguments)}", flush=True)
    if status := subprocess.run(arguments).returncode:
        sys.exit(status)


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
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, limit=1 << 20
    )
    last_lines: list[str] = []
    bar = tqdm(desc=name, total=total, position=position, unit=" updates", disable=None, leave=False)
    try:
        async for raw in process.stdout:
            line = raw.decode("utf-8", errors="replace")
            last_lines = [*last_lines[-30:], line]
            statistics = parse_statistics(line)
            if statistics is None:
                continue
            done = int(statistics["num_updates"])
            bar.update(done - bar.n)
            if statistics["split"] == "valid":
                tqdm.write(f"{name}: {done:,} of {total:,} updates, development perplexity {statistics['ppl']:.2f}")
        status = await process.wait()
    finally:
        bar.close()
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()
    if status != 0:
        sys.stderr.writelines(last_lines)
        raise InputError(f"{name}: {command[0]} ended with exit status {status}; its last lines stand above")


def show_samples(lines: dict[str, list[str]]) -> None:
    """Some sentences of the test set, spread over it, with everything that was made of them."""
    heading("Samples of the test set")
    count = len(next(iter(lines.values())))
    width = max(map(len, lines))
    for number in range(0, count, max(1, count // SAMPLES))[:SAMPLES]:
        print("\n".join(f"{name:>{width}}  {sentences[number]}" for name, sentences in lines.items()), end="\n\n")


def score(work: Path, data: PreparedData, baseline: list[str]) -> None:
    """Writes the scores of the baseline's text of the test set, in a work folder of its own."""
    metric = metric_named(data.preparation.metric)
    references = decoding_of(metric).references(data, "test")
    tokens = [data.pairs.tokenize_target(line) for line in baseline]
    results.write(work, metric.scores(Outputs(tokens, baseline), references))


if __name__ == "__main__":
    main_of(main)
