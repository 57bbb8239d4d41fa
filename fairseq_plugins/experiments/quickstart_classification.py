"""``fairseq-plugins quickstart --task classification``: RCRN and a BiLSTM on sentences in which word order decides.

A sentence names two people, and its class is the one who acts. Beside the networks a bag of words is trained, which
sees the words without their order.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ..files import read_lines
from ..package_files import CONFIGURATIONS
from ..scoring.metrics import Outputs, metric_named
from ..terminal import table
from . import configuration as configurations
from . import processes, records, results
from .builtin_corpora import builtin_corpus
from .decoding import decoding_of
from .prepared_data import PreparedData
from .quickstart_steps import heading, options_of_training, show_samples, step, train_side_by_side

FOLDER = "quickstart_classification"
"""Below ``configs``, and below ``work``."""
SYSTEMS = {"RCRN": "rcrn", "BiLSTM": "bilstm"}
BASELINE = "bag of words"
SENTENCE = "It was the doctor whom the pilot thanked at the station on Monday."


def run(work: Path, sentence: str | None, max_update: int | None, seed: int | None, is_recorded: bool) -> None:
    """The whole quick start.

    Args:
        work: where everything goes
        sentence: what the trained model is tried on; None for one of ours
        max_update: after how many updates trainings stop; None for what the configurations say
        seed: of both trainings; None for that of the configurations
        is_recorded: whether the scores go to ``results/``
    """
    started = time.monotonic()
    text, data = work / "text", work / "data"
    heading("Sentences from a grammar: who acts?")
    for preparing in builtin_corpus("classification", text, data, ()):
        step(preparing)

    heading("Training both models, one thread each")
    limit = options_of_training(max_update, seed)
    places = {name: ["--work", work / model, "--data", data, "--gpus", 0] for name, model in SYSTEMS.items()}
    train_side_by_side(
        {name: [*processes.own_command("train"), preset(name), *place, *limit] for name, place in places.items()},
        {name: int(configurations.load(preset(name)).train["max-update"].text) for name in SYSTEMS},
    )

    heading("Classifying the test set")
    for name, place in places.items():
        step([*processes.own_command("evaluate"), preset(name), *place, *(["--record"] if is_recorded else [])])
    prepared = PreparedData.load(data)
    metric = metric_named(prepared.preparation.metric)
    decoding = decoding_of(metric)
    references = decoding.references(prepared, "test")
    predicted = {
        name: list(decoding.read(work / model / "generate", prepared, "test").tokens) for name, model in SYSTEMS.items()
    }
    baseline = bag_of_words(data)
    plain = work / BASELINE.replace(" ", "_")
    results.write(plain, metric.scores(Outputs(baseline, baseline), references))
    if is_recorded:
        records.record_baseline(FOLDER, plain.name, results.load(plain))
    sentences = list(read_lines(data / "raw" / "test.input0"))
    show_samples({"sentence": sentences, "who acts": list(references.text[0]), BASELINE: baseline, **predicted})

    heading("Scores on the test set")
    works = {BASELINE: plain, **{name: work / model for name, model in SYSTEMS.items()}}
    rows, explanations = results.overview(works)
    print(table(rows), *explanations, sep="\n")

    heading("A report")
    page = work / "report.html"
    step(
        [*processes.own_command("report"), *(f"{name}={folder}" for name, folder in works.items()), "--output", page]
        + ["--title", "Quick start: classification", "--subtitle", "RCRN and a BiLSTM on built-in sentences"]
        + [
            "--notice",
            "A grammar made these sentences: they show that everything works, and not which model is better.",
        ]
    )

    heading("Your sentence")
    command = [*processes.own_command("predict"), str(work / SYSTEMS["RCRN"] / "checkpoints" / "checkpoint_best.pt")]
    sentence = sentence or SENTENCE
    print(f"$ echo {processes.shown([sentence])} | {processes.shown(command)}", flush=True)
    finished = subprocess.run(command, input=sentence + "\n", stdout=subprocess.PIPE, text=True)
    if finished.returncode != 0:
        sys.exit(finished.returncode)
    print(finished.stdout, end="")
    print(f"\nDone in {(time.monotonic() - started) / 60:.1f} minutes. Checkpoints, logs and results.json: {work}")


def preset(system: str) -> str:
    """The path of a system's configuration."""
    return str(CONFIGURATIONS / FOLDER / f"{SYSTEMS[system]}.yaml")


def bag_of_words(data: Path) -> list[str]:
    """What a logistic regression over counts of words makes of the test set.

    Args:
        data: the prepared data
    """
    # Not at the head of the file: nothing else here needs it.
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(CountVectorizer(token_pattern=r"\S+"), LogisticRegression(max_iter=1000))
    texts = {split: list(read_lines(data / "tokens" / f"{split}.input0")) for split in ("train", "test")}
    model.fit(texts["train"], list(read_lines(data / "raw" / "train.label")))
    return list(map(str, model.predict(texts["test"])))
