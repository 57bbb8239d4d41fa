"""``fairseq-plugins quickstart --task language_model``: an LSTM and MC-RNN-3 as language models."""

from __future__ import annotations

import time
from pathlib import Path

from ..corpora.builtin import TEXT
from ..files import read_lines
from ..package_files import CONFIGURATIONS
from ..scoring.metrics import Outputs, References, metric_named
from ..scoring.ngrams import ngram_log_probabilities
from ..terminal import table
from . import configuration as configurations
from . import records, results
from .builtin_corpora import builtin_corpus
from .processes import own_command
from .quickstart_steps import heading, options_of_training, step, train_side_by_side

SYSTEMS = {"MC-RNN-3": "mc_rnn_3", "LSTM": "lstm"}
BASELINES = {"unigrams": 1, "trigrams": 3}
FOLDER = "quickstart_language_model"
"""Below ``configs``, and below ``work``."""
PROMPT = "my brother"


def run(work: Path, prompt: str | None, max_update: int | None, seed: int | None, is_recorded: bool) -> None:
    """The whole quick start.

    Args:
        work: where everything goes
        prompt: what the text begins with that is drawn at the end; None for one of ours
        max_update: after how many updates trainings stop; None for what the configurations say
        seed: of both trainings; None for that of the configurations
        is_recorded: whether the scores go to ``results/``
    """
    started = time.monotonic()
    text, data = work / "text", work / "data"
    heading("A text from a grammar: its words, each line's end among them")
    for command in builtin_corpus(TEXT, text, data, ()):
        step(command)

    heading("Training both models, one thread each")
    limit = options_of_training(max_update, seed)
    places = {name: ["--work", work / model, "--data", data, "--gpus", 0] for name, model in SYSTEMS.items()}
    presets = {name: CONFIGURATIONS / FOLDER / f"{model}.yaml" for name, model in SYSTEMS.items()}
    train_side_by_side(
        {name: [*own_command("train"), presets[name], *place, *limit] for name, place in places.items()},
        {name: int(configurations.load(path).train["max-update"].text) for name, path in presets.items()},
    )

    heading("Reading the test set, without and with the continuous cache")
    keeping = ["--record"] if is_recorded else []
    for name, place in places.items():
        step([*own_command("evaluate"), presets[name], *place, *keeping])
        step([*own_command("evaluate"), presets[name], *place, "--cache", *keeping])

    heading("Perplexity of the test set")
    train, test = (list(read_lines(data / "tokens" / f"{split}.txt")) for split in ("train", "test"))
    works = {name: work / name for name in BASELINES} | {name: work / model for name, model in SYSTEMS.items()}
    metric = metric_named("perplexity")
    for name, order in BASELINES.items():
        outputs = Outputs(test, test, ngram_log_probabilities(train, test, order))
        results.write(works[name], metric.scores(outputs, References([test], [test])))
        if is_recorded:
            records.record_baseline(FOLDER, name, results.load(works[name]))
    rows, explanations = results.overview(works)
    for row in rows:
        with_cache = results.load(works[row["system"]]).get("subsets", {}).get("test with cache", {})
        row["with the cache"] = with_cache.get("perplexity")
    print(table(rows), *explanations, sep="\n")

    heading("A report")
    step(
        [
            *own_command("report"),
            *(f"{name}={folder}" for name, folder in works.items()),
            "--output",
            work / "report.html",
        ]
        + ["--title", "Quick start: language model", "--subtitle", "MC-RNN and an LSTM on the built-in text"]
        + ["--notice", "A grammar made this text: it shows that everything works, and not which model is better."]
    )

    heading("Text of MC-RNN-3's own")
    checkpoint = work / SYSTEMS["MC-RNN-3"] / "checkpoints" / "checkpoint_best.pt"
    step([*own_command("generate-text"), checkpoint, "--tokens", 40, "--prompt", prompt or PROMPT, "--gpus", 0])
    print(f"\nDone in {(time.monotonic() - started) / 60:.1f} minutes. Checkpoints, logs and results.json: {work}")
