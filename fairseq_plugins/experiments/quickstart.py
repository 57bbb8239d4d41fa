"""``fairseq-plugins quickstart``: MC-RNN and RNNSearch trained side by side on a built-in corpus, scored and tried out.

Every step is one of the commands that a user's own experiment takes; they are printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..command_parser import CommandParser
from ..corpora.builtin import SUFFIXES, TEXT
from ..errors import InputError
from ..files import read_lines
from ..package_files import CONFIGURATIONS
from ..scoring.metrics import Metric, Outputs, metric_named
from ..terminal import table
from . import configuration as configurations
from . import processes, record_groups, records, results
from .builtin_corpora import builtin_corpus
from .command_line import work_folder
from .decoding import decoding_of
from .prepared_data import PreparedData
from .quickstart_steps import heading, options_of_training, show_kernels, show_samples, step, train_side_by_side

SYSTEMS = {"MC-RNN-3": "mc_rnn_3", "RNNSearch": "rnnsearch"}
LEAD = 8


@dataclass(frozen=True)
class Task:
    """What differs between the built-in corpora."""

    preparation: tuple[object, ...]
    """Options of ``prepare parallel``."""
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


_DESCRIPTION = """\
Makes a small German-English corpus out of a grammar, trains MC-RNN and RNNSearch on it side by side on the CPU, scores
both, and translates a sentence. Or the same with headlines for the first sentences of articles, RCRN and a BiLSTM that
say who acts in a sentence, or language models of a text."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "quickstart",
        _DESCRIPTION,
        ("", "--task summarization", "--max-update 50"),
        "Takes 5 to 6 minutes on 2 CPU cores (classification 1, language_model 2).",
    )
    options.add_argument(
        "--task", choices=(*TASKS, "classification", TEXT), default="translation", help="default: %(default)s"
    )
    options.add_argument(
        "--sentence",
        metavar="TEXT",
        help="a German sentence to translate at the end, an English one to write a headline for or to classify, or the "
        "beginning of a text to go on with",
    )
    options.add_argument(
        "--max-update", type=int, metavar="N", help="stop training after N updates: a quick check that everything works"
    )
    options.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="of both trainings, in place of the configurations'; then --work is work/quickstart_seed_N by default",
    )
    options.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="where everything goes (default: work/quickstart, work/quickstart_summarization …)",
    )
    options.add_argument("--record", action="store_true", help="also write both runs to results/")
    return options


def main(arguments: Sequence[str]) -> None:
    """The whole quick start."""
    options = parser().parse_args(arguments)
    if options.max_update is not None and options.max_update < 1:
        raise InputError(f"--max-update is {options.max_update}; it must be at least 1")
    # One thread for each of the two trainings; more would only get into each other's way.
    os.environ["OMP_NUM_THREADS"] = "1"
    if options.task in ("classification", TEXT):
        from . import quickstart_classification, quickstart_language_model

        other = quickstart_language_model if options.task == TEXT else quickstart_classification
        work = work_of(other.FOLDER, options.work, options.seed, other.SYSTEMS.values())
        show_kernels()
        return other.run(work, options.sentence, options.max_update, options.seed, options.record)
    task = TASKS[options.task]
    work = work_of(task.configurations, options.work, options.seed, SYSTEMS.values())
    started = time.monotonic()
    show_kernels()

    text, data = work / "text", work / "data"
    heading("A corpus from a grammar: sentences, tokens, BPE")
    for preparing in builtin_corpus(options.task, text, data, task.preparation):
        step(preparing)

    heading("Training both models, one thread each")
    limit = options_of_training(options.max_update, options.seed)
    places = {name: ["--work", work / model, "--data", data, "--gpus", 0] for name, model in SYSTEMS.items()}
    train_side_by_side(
        {name: [*processes.own_command("train"), preset(task, name), *place, *limit] for name, place in places.items()},
        {name: updates(task, name) for name in SYSTEMS},
    )

    heading("Translating the test set" if options.task == "translation" else "Writing headlines for the test set")
    for name, place in places.items():
        step(
            [*processes.own_command("evaluate"), preset(task, name), *place, *(["--record"] if options.record else [])]
        )

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
    prepared = PreparedData.load(data)
    score(works[task.names[1]], prepared, baseline)
    if options.record:
        found = results.load(works[task.names[1]])
        records.record_baseline(task.configurations, task.names[1].replace(" ", "_"), found)
    works |= {name: work / model for name, model in SYSTEMS.items()}
    rows, explanations = results.overview(works)
    notes = add_recorded(rows, task, metric_named(prepared.preparation.metric), options.max_update is None)
    print(table(rows), *explanations, *notes, sep="\n")

    heading("A report")
    page = work / "report.html"
    step(
        [*processes.own_command("report"), *(f"{name}={folder}" for name, folder in works.items()), "--output", page]
        + ["--title", f"Quick start: {options.task}", "--subtitle", "MC-RNN and RNNSearch on the built-in corpus"]
        + ["--notice", "A grammar made this corpus: it shows that everything works, and not which model is better."]
    )

    heading("Your sentence")
    checkpoint = work / SYSTEMS["MC-RNN-3"] / "checkpoints" / "checkpoint_best.pt"
    command = [*processes.own_command("translate"), str(checkpoint)]
    sentence = options.sentence or task.sentence
    print(f"$ echo {processes.shown([sentence])} | {processes.shown(command)}", flush=True)
    translated = subprocess.run(command, input=sentence + "\n", stdout=subprocess.PIPE, text=True)
    if translated.returncode != 0:
        sys.exit(translated.returncode)
    print(translated.stdout, end="")
    print(f"\nDone in {(time.monotonic() - started) / 60:.1f} minutes. Checkpoints, logs and results.json: {work}")
    print(f"The report, with learning curves and what the models attended to: {page}")


def preset(task: Task, system: str) -> str:
    """The path of a system's configuration."""
    return str(CONFIGURATIONS / task.configurations / f"{SYSTEMS[system]}.yaml")


def updates(task: Task, system: str) -> int:
    """For how many updates a system's configuration trains."""
    return int(configurations.load(preset(task, system)).train["max-update"].text)


def work_of(name: str, given: Path | None, seed: int | None, systems: Iterable[str]) -> Path:
    """The work folder of a quick start.

    Args:
        name: of the folder below ``work``, unless one is given
        given: ``--work``
        seed: ``--seed``
        systems: the folders of the trainings

    Raises:
        InputError: a model in the folder was trained with another seed.
    """
    default = Path("work") / name
    if seed is not None:
        # Trainings go on where they stopped: another seed is another folder.
        default = default.with_name(f"{name}_seed_{seed}")
    work = work_folder(given or default)
    for model in systems:
        known = results.load(work / model).get("seed")
        if seed is not None and known not in (None, seed):
            raise InputError(f"{work / model} was trained with seed {known}, not {seed}; name another folder by --work")
    return work


def add_recorded(
    rows: list[dict[str, Any]],
    task: Task,
    metric: Metric,
    is_whole: bool,
    known: Sequence[records.Record] | None = None,
) -> list[str]:
    """Adds the recorded mean and range of each model to the rows of the scores, in a column of its own.

    Args:
        rows: a row for each system
        task: of the quick start
        metric: whose main number is compared
        is_whole: whether the models were trained for as long as their configurations say
        known: the recorded runs; those of the project unless they are given

    Returns:
        What to say below the table.
    """
    column, notes, is_compared = metric.main, [], False
    known = records.load_all() if known is None else known
    for row in rows:
        found = None
        if row["system"] in SYSTEMS:
            found = record_groups.group_of(configurations.load(preset(task, row["system"])), known)
        figure = found and found.figure(column.key)
        row[f"recorded {column.label}"] = figure and recorded(figure, column.form)
        is_compared = is_compared or figure is not None
        if figure and is_whole and row[column.label] is not None:
            worst = (min if column.higher_is_better else max)(figure.values)
            if column.advance(row[column.label] - worst) < 0:
                side = "below" if column.higher_is_better else "above"
                notes.append(
                    f"{row['system']}: {column.label} {row[column.label]:{column.form}} is {side} the recorded "
                    f"{figure.range(column.form)} ({figure.runs}; docs/results.md)"
                )
    if is_compared and not is_whole:
        notes.append("The recorded runs trained for longer: --max-update cut these short.")
    return notes


def recorded(figure: record_groups.Figure, form: str) -> str:
    """``93.34, from 92.19 to 93.74 (10 runs)``, or ``93.34 (one run)``."""
    mean = "" if figure.deviation is None else f"{figure.mean:{form}}, from "
    return f"{mean}{figure.range(form)} ({figure.runs})"


def score(work: Path, data: PreparedData, baseline: list[str]) -> None:
    """Writes the scores of the baseline's text of the test set, in a work folder of its own."""
    metric = metric_named(data.preparation.metric)
    references = decoding_of(metric).references(data, "test")
    tokens = [data.pairs.tokenize_target(line) for line in baseline]
    results.write(work, metric.scores(Outputs(tokens, baseline), references))
