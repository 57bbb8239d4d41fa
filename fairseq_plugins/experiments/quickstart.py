"""``fairseq-plugins quickstart``: two models trained side by side on a built-in corpus, scored and tried out.

Every step is one of the commands that a user's own experiment takes; they are printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..command_parser import CommandParser
from ..corpora.builtin import PLAIN, TEXT, held_out
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..fairseq_program import environment
from ..files import read_lines
from ..missing import remedy
from ..package_files import CONFIGURATIONS
from ..samples import spread
from ..scoring.metrics import Metric, Outputs, metric_named
from ..scoring.ngrams import ngram_log_probabilities
from ..terminal import table
from . import configuration as configurations
from . import groups_of_runs, recorded_runs
from .builtin_corpora import builtin_corpus
from .command_line import work_folder
from .decoding import decoding_of
from .held_out import count_sentence, translate_held_out
from .processes import own_command, shown
from .run import Run, overview
from .side_by_side import WatchedPair, kernels_compiled, steps_side_by_side, train_side_by_side

SYSTEMS = {"MC-RNN-3": "mc_rnn_3", "RNNSearch": "rnnsearch"}
"""What the models of pairs are called → their configurations."""
LEAD = 8
SAMPLES = 5
PLAIN_SAMPLES = 8
"""How many of the plain held-out sentences are shown."""
_WATCHED_WORDS = 6


def word_for_word(data: PreparedData, text: Path) -> dict[str, Outputs]:
    """The word-for-word translation of the test set, which the corpus has."""
    return {"word for word": _outputs(data, list(read_lines(text / "test.word_for_word.en")))}


def first_words(data: PreparedData, text: Path) -> dict[str, Outputs]:
    """The beginnings of the articles, which are English: their words are between spaces."""
    articles = read_lines(data.folder / "raw" / "test.article")
    return {f"first {LEAD} words": _outputs(data, [" ".join(line.split()[:LEAD]) for line in articles])}


def _outputs(data: PreparedData, lines: list[str]) -> Outputs:
    return Outputs([data.pairs.tokenize_target(line) for line in lines], lines)


def bag_of_words(data: PreparedData, text: Path) -> dict[str, Outputs]:
    """What a logistic regression over counts of words makes of the test set: it sees no order."""
    # Not at the head of the file: nothing else here needs it.
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(CountVectorizer(token_pattern=r"\S+"), LogisticRegression(max_iter=1000))
    texts = {split: list(read_lines(data.folder / "tokens" / f"{split}.input0")) for split in ("train", "test")}
    model.fit(texts["train"], list(read_lines(data.folder / "raw" / "train.label")))
    labels = list(map(str, model.predict(texts["test"])))
    return {"bag of words": Outputs(labels, labels)}


def ngrams(data: PreparedData, text: Path) -> dict[str, Outputs]:
    """The probabilities that counts of words give the test set."""
    train, test = (list(read_lines(data.folder / "tokens" / f"{split}.txt")) for split in ("train", "test"))
    orders = {"unigrams": 1, "trigrams": 3}
    return {name: Outputs(test, test, ngram_log_probabilities(train, test, order)) for name, order in orders.items()}


@dataclass(frozen=True)
class Task:
    """What differs between the built-in corpora."""

    configurations: str
    """The folder below ``configs``, and the work folder."""
    baselines: Callable[[PreparedData, Path], dict[str, Outputs]]
    """Of the prepared data and the folder of the text: what a baseline is called → what it makes of the test set."""
    typed: tuple[str, ...]
    """What the first of the trained models is tried on: typed by hand, and in no file of the corpus."""
    corpus: str
    """The heading of the corpus."""
    decoding: str
    """The heading of the decoding."""
    subtitle: str
    """That of the report."""
    notice: str
    """What the report says of the corpus."""
    systems: Mapping[str, str]
    """What a model is called → its configuration. The first one is tried out at the end."""
    preparation: tuple[object, ...] = ()
    """Options of the preparation."""
    evaluations: tuple[tuple[str, ...], ...] = ((),)
    """Options of the evaluation: of one, or of several in turn."""
    inputs: str = ""
    """The test set's file of inputs, of which samples are shown; empty where there is nothing to show."""
    names: tuple[str, ...] = ()
    """What an input, the baseline and a reference are called in samples."""
    program: str = ""
    """The command that the trained model is tried by, which reads ``typed``; empty for one that takes a prompt."""


TASKS = {
    "translation": Task(
        configurations="quickstart",
        systems=SYSTEMS,
        preparation=("--tokenizer", "moses", "--separate", "--bpe-size", 1400),
        baselines=word_for_word,
        inputs="test.de",
        names=("German", "word for word", "reference"),
        corpus="A corpus from a grammar: sentences, tokens, BPE",
        decoding="Translating the test set",
        subtitle="MC-RNN and RNNSearch on the built-in corpus",
        notice="A grammar made this corpus: it shows that everything works, and not which model is better.",
        program="translate",
        typed=(held_out()[0].source,),
    ),
    "summarization": Task(
        configurations="quickstart_summarization",
        systems=SYSTEMS,
        preparation=("--tokenizer", "moses", "--lowercase", "--bpe-size", 1500, "--metric", "rouge"),
        baselines=first_words,
        inputs="test.article",
        names=("article", f"first {LEAD} words", "reference"),
        corpus="A corpus from a grammar: sentences, tokens, BPE",
        decoding="Writing headlines for the test set",
        subtitle="MC-RNN and RNNSearch on the built-in corpus",
        notice="A grammar made this corpus: it shows that everything works, and not which model is better.",
        program="translate",
        typed=(
            "Shares on the stock exchange in Tokyo closed sharply lower on Monday as investors worried about the cost "
            "of oil, a newspaper reported.",
            "A forest fire in southern Greece killed 7 people on Sunday, while the president of Kenya arrived in Oslo.",
            "The Danish trade minister, Keane, resigned on Thursday for reasons of health.",
        ),
    ),
    # A sentence names two people, and its class is the one who acts: word order decides.
    "classification": Task(
        configurations="quickstart_classification",
        systems={"RCRN": "rcrn", "BiLSTM": "bilstm"},
        baselines=bag_of_words,
        inputs="test.input0",
        names=("sentence", "bag of words", "who acts"),
        corpus="Sentences from a grammar: who acts?",
        decoding="Classifying the test set",
        subtitle="RCRN and a BiLSTM on built-in sentences",
        notice="A grammar made these sentences: they show that everything works, and not which model is better.",
        program="predict",
        typed=(
            "It was the doctor whom the pilot thanked at the station on Monday.",
            "The baker was warned by the singer.",
            "The farmer called the teacher yesterday.",
        ),
    ),
    TEXT: Task(
        configurations="quickstart_language_model",
        systems={"MC-RNN-3": "mc_rnn_3", "LSTM": "lstm"},
        baselines=ngrams,
        evaluations=((), ("--cache",)),
        corpus="A text from a grammar: its words, each line's end among them",
        decoding="Reading the test set, without and with the continuous cache",
        subtitle="MC-RNN and an LSTM on the built-in text",
        notice="A grammar made this text: it shows that everything works, and not which model is better.",
        typed=("my brother", "the teacher says that", "yesterday evening"),
    ),
}


def preset(task: Task, system: str) -> str:
    """The path of a system's configuration."""
    return str(CONFIGURATIONS / task.configurations / f"{task.systems[system]}.yaml")


def updates(task: Task, system: str) -> int:
    """For how many updates a system's configuration trains."""
    return int(configurations.load(preset(task, system)).train["max-update"].text)


_DESCRIPTION = """\
Trains MC-RNN and RNNSearch side by side on the CPU, on a small German-English corpus that a grammar made, scores both,
and translates a sentence. Or the same with headlines for the first sentences of articles, RCRN and a BiLSTM that say
who acts in a sentence, or language models of a text."""


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "quickstart",
        _DESCRIPTION,
        ("", "--task summarization", "--max-update 50"),
        "Takes 3 to 5 minutes on 2 CPU cores (classification 1, language_model 2).",
    )
    options.add_argument("--task", choices=tuple(TASKS), default="translation", help="default: %(default)s")
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
    task = TASKS[options.task]
    work = work_of(task, options.work, options.seed)
    started = time.monotonic()
    text, data = work / "text", work / "data"
    with kernels_compiled():
        heading(task.corpus)
        for command in builtin_corpus(options.task, text, data, task.preparation):
            step(command)

    heading("Training both models, one thread each")
    places = {name: ["--work", work / model, "--data", data, "--gpus", 0] for name, model in task.systems.items()}
    changes = {"--max-update": options.max_update, "--seed": options.seed}
    limit = [part for name, value in changes.items() if value is not None for part in (name, value)]
    train_side_by_side(
        {name: [*own_command("train"), preset(task, name), *place, *limit] for name, place in places.items()},
        {name: updates(task, name) for name in places},
        watched_pair(data, task) if task.program == "translate" else None,
    )

    translations = {}
    if options.task == "translation":
        heading("Sentences that were written by hand, and are not in the corpus")
        for name, model in task.systems.items():
            translations[name] = translate_held_out(Run(work / model), configurations.load(preset(task, name)))
        print(*held_out_lines(translations), sep="\n")

    heading(task.decoding)
    keep = ["--record"] if options.record else []
    for variant in task.evaluations:
        steps_side_by_side(
            [[*own_command("evaluate"), preset(task, name), *place, *variant, *keep] for name, place in places.items()]
        )

    prepared = PreparedData.load(data)
    metric = metric_named(prepared.preparation.metric)
    decoding = decoding_of(metric)
    references = decoding.references(prepared, "test")
    baselines = task.baselines(prepared, text)
    works = {name: work / name.replace(" ", "_") for name in baselines}
    for name, outputs in baselines.items():
        run = Run(works[name])
        run.write(metric.scores(outputs, references))
        if options.record:
            recorded_runs.record_baseline(task.configurations, works[name].name, run.results)
    works |= {name: work / model for name, model in task.systems.items()}
    runs = {name: Run(folder) for name, folder in works.items()}
    if task.inputs:
        source, baseline, target = task.names
        outputs_of = {name: runs[name].outputs(metric, prepared, "test") for name in task.systems}
        show_samples(
            {
                source: list(read_lines(data / "raw" / task.inputs)),
                target: references.text[0],
                baseline: baselines[baseline].text,
                **{name: outputs.text for name, outputs in outputs_of.items()},
            }
        )

    heading(f"{'Perplexity of' if options.task == TEXT else 'Scores on'} the test set")
    rows, notes = overview(runs)
    if options.task == TEXT:
        add_cache(rows, runs)
    if task.program == "translate":
        notes += add_recorded(rows, task, metric, options.max_update is None)
    print(table(rows), *notes, sep="\n")

    heading("A report")
    page = work / "report.html"
    named = [f"{name}={folder}" for name, folder in works.items()]
    title = f"Quick start: {options.task.replace('_', ' ')}"
    step(
        [*own_command("report"), *named, "--output", page]
        + ["--title", title, "--subtitle", task.subtitle, "--notice", task.notice]
    )

    try_out(task, work, (options.sentence,) if options.sentence else task.typed)
    heading(f"Done in {(time.monotonic() - started) / 60:.1f} minutes; now you")
    for comment, line in next_commands(options.task, work):
        print(f"# {comment}\n{line}")


def work_of(task: Task, folder: Path | None, seed: int | None) -> Path:
    """The work folder of a quick start.

    Args:
        task: whose name it has below ``work``
        folder: ``--work``, another one
        seed: ``--seed``

    Raises:
        InputError: a model in the folder was trained with another seed.
    """
    default = Path("work") / task.configurations
    if seed is not None:
        # Trainings go on where they stopped: another seed is another folder.
        default = default.with_name(f"{default.name}_seed_{seed}")
    work = work_folder(folder or default)
    for model in task.systems.values():
        seed_before = Run(work / model).results.get("seed")
        if seed is not None and seed_before not in (None, seed):
            raise InputError(
                f"{work / model} was trained with seed {seed_before}, not {seed}; name another folder by --work"
            )
    return work


def try_out(task: Task, work: Path, typed: Sequence[str]) -> None:
    """Has the first of the trained models say something of each text, or go on with it."""
    name, model = next(iter(task.systems.items()))
    folder = work / model
    heading(f"What {name} makes of text that was typed by hand")
    if not task.program:
        generate = [*own_command("generate-text"), folder, "--tokens", 15, "--gpus", 0]
        steps_side_by_side([[*generate, "--prompt", text] for text in typed])
        return
    command = [*own_command(task.program), str(folder)]
    print(f"$ printf '%s\\n' {shown(typed)} | {shown(command)}", flush=True)
    lines = "".join(f"{text}\n" for text in typed)
    finished = subprocess.run(command, input=lines, stdout=subprocess.PIPE, encoding="utf-8", env=environment())
    if finished.returncode != 0:
        sys.exit(finished.returncode)
    for text, line in zip(typed, finished.stdout.splitlines(), strict=True):
        print(f"\n{text}\n  {line}")


def next_commands(name: str, work: Path) -> list[tuple[str, str]]:
    """Commands to go on with, which can be pasted into a shell and work: what each is for, and the command.

    Args:
        name: of the task, one of :data:`TASKS`
        work: the work folder of the quick start
    """
    task, here = TASKS[name], Path(os.path.relpath(work))
    system = next(iter(task.systems))
    model, own_text = here / task.systems[system], here / "own_text"
    text, program = shown([task.typed[0]]), [*own_command(task.program or "generate-text"), str(model)]
    _, prepare = builtin_corpus(name, here / "text", own_text / "data", task.preparation)
    train = [*own_command("train"), preset(task, system), "--work", own_text / model.name, "--data", own_text / "data"]
    steps = [
        (
            "a text of your own",
            f"echo {text} | {shown(program)}" if task.program else f"{shown(program)} --tokens 40 --prompt {text}",
        ),
        ("a page about one model", shown([*own_command("report"), str(model)])),
        ("training on your own text: put your files in the place of these", one_after_the_other(prepare, train)),
    ]
    if task.program == "translate":
        exported = str(here / "exported")
        export = [*own_command("export"), str(model), "--output", exported]
        serve = one_after_the_other(export, [*own_command("serve"), exported])
        steps.append((f"a page that translates as you type (first {remedy('export,serve')})", serve))
    return steps


def one_after_the_other(*commands: Sequence[object]) -> str:
    """A line for a shell that runs commands until one fails."""
    return " && ".join(shown([str(part) for part in command]) for command in commands)


def add_cache(rows: list[dict[str, Any]], runs: Mapping[str, Run]) -> None:
    """Adds the perplexity with the continuous cache to the rows of the scores, in a column of its own."""
    for row in rows:
        with_cache = runs[row["system"]].results.get("subsets", {}).get("test with cache", {})
        row["with the cache"] = with_cache.get("perplexity")


def add_recorded(
    rows: list[dict[str, Any]],
    task: Task,
    metric: Metric,
    is_whole: bool,
    runs: Sequence[recorded_runs.Record] | None = None,
) -> list[str]:
    """Adds the recorded mean and range of each model to the rows of the scores, in a column of its own.

    Args:
        rows: a row for each system
        task: of the quick start
        metric: whose main number is compared
        is_whole: whether the models were trained for as long as their configurations say
        runs: the recorded ones; None for those of the project

    Returns:
        What to say below the table.
    """
    column, notes, is_compared = metric.main, [], False
    runs = recorded_runs.load_all() if runs is None else runs
    for row in rows:
        group = None
        if row["system"] in task.systems:
            group = groups_of_runs.group_of(configurations.load(preset(task, row["system"])), runs)
        figure = group and group.figure(column.key)
        row[f"recorded {column.label}"] = figure and _text_of(figure, column.form)
        is_compared = is_compared or figure is not None
        if figure and is_whole and row[column.label] is not None:
            worst = (min if column.higher_is_better else max)(figure.values)
            if column.advance(row[column.label] - worst) < 0:
                side = "below" if column.higher_is_better else "above"
                notes.append(
                    f"{row['system']}: {column.label} {row[column.label]:{column.form}} is {side} the recorded "
                    f"{figure.range(column.form)} ({figure.runs}; docs/results/)"
                )
    if is_compared and not is_whole:
        notes.append("The recorded runs trained for longer: --max-update cut these short.")
    return notes


def _text_of(figure: groups_of_runs.Figure, form: str) -> str:
    """``93.34, from 92.19 to 93.74 (10 runs)``, or ``93.34 (one run)``."""
    mean = "" if figure.deviation is None else f"{figure.mean:{form}}, from "
    return f"{mean}{figure.range(form)} ({figure.runs})"


def heading(title: str) -> None:
    """Prints a step's title."""
    print(f"\n== {title} ==", flush=True)


def step(command: Sequence[object]) -> None:
    """Prints and runs one command, whose errors speak for themselves."""
    arguments = [str(part) for part in command]
    print(f"$ {shown(arguments)}", flush=True)
    if status := subprocess.run(arguments, env=environment()).returncode:
        sys.exit(status)


def held_out_lines(translations: Mapping[str, Sequence[str]], number: int = PLAIN_SAMPLES) -> list[str]:
    """Some of the plain held-out sentences with what each system made of them, and how many are right.

    Args:
        translations: of each system, of all held-out sentences
        number: of sentences
    """
    pairs = held_out()
    plain = [place for place, pair in enumerate(pairs) if pair.kind == PLAIN]
    width = max(len("reference"), *map(len, translations))
    lines = []
    for place in (plain[index] for index in spread(len(plain), number)):
        texts = {"German": pairs[place].source, "reference": pairs[place].reference}
        texts |= {name: made[place] for name, made in translations.items()}
        lines += [*(f"{name:>{width}}  {text}" for name, text in texts.items()), ""]
    return [*lines, *(f"{name}: {count_sentence(made)}" for name, made in translations.items())]


def watched_pair(data: Path, task: Task) -> WatchedPair:
    """A short pair of the development set: a whole sentence where it has one, for some go without a full stop."""
    source, target = (
        list(read_lines(data / "raw" / f"valid{Path(name).suffix}"))
        for name in (task.inputs, f"test.{PreparedData.load(data).pairs.target_lang}")
    )
    distances = [abs(len(line.split()) - _WATCHED_WORDS) for line in source]
    number = min(range(len(source)), key=lambda place: (not source[place].endswith("."), distances[place]))
    return WatchedPair(source[number], target[number])


def show_samples(lines: Mapping[str, Sequence[str]]) -> None:
    """Some sentences of the test set, spread over it, with everything that was made of them."""
    heading("Samples of the test set")
    count = len(next(iter(lines.values())))
    width = max(map(len, lines))
    for number in spread(count, SAMPLES):
        print("\n".join(f"{name:>{width}}  {sentences[number]}" for name, sentences in lines.items()), end="\n\n")
