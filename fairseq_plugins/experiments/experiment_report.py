"""``scripts/report.sh``: the report of one experiment, from its work folder."""

from __future__ import annotations

import argparse
import datetime
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.figures import inline_svg
from ..errors import InputError
from ..files import read_lines
from ..scoring.rouge import METRICS as ROUGE
from . import commands, config, learning_curves, pictures, results
from .report import Experiment, Figure, Report, ReportTable, Sample, write
from .train import STATISTICS

SAMPLES = 5
BLEU = {"bleu_tokenized": "BLEU (tokenised)", "bleu_sacrebleu": "sacreBLEU"}
SIGNATURES = {
    "bleu_tokenized_signature": "BLEU (tokenised)",
    "sacrebleu_signature": "sacreBLEU",
    "rouge_signature": "ROUGE, F1 with 95 % intervals",
}


def experiment_report(work: Path, figures: Sequence[Figure] = (), samples: Sequence[Sample] = ()) -> Report:
    """The report of one experiment from its work folder: ``results.json``, ``train.jsonl`` and the configuration.

    Args:
        work: where ``scripts/train.sh`` and ``scripts/evaluate.sh`` wrote
        figures: shown after the learning curves
        samples: sentences of the test set

    Raises:
        InputError: there is no ``results.json`` or it is damaged, as are other files of the folder.
    """
    found = _results(work)
    configuration = _configuration(found)
    data = results.prepared_data(found)
    name = _name(work, configuration)
    curves = learning_curves_figure({name: work}) if (work / STATISTICS).is_file() else None
    facts = [
        f"Architecture {architecture}"
        if (architecture := commands.option(results.command(found), "--arch", "-a"))
        else "",
        f"{found['parameters']:,} parameters" if found.get("parameters") is not None else "",
        f"{found['updates']:,} updates" if "updates" in found else "",
        f"seed {found['seed']}" if "seed" in found else "",
    ]
    return Report(
        title=name,
        subtitle=", ".join(filter(None, facts)) or "An experiment of fairseq-plugins",
        notice=None,
        tables=[*_scores(found, data), *_training(found)],
        figures=[*([curves] if curves else []), *figures],
        samples=list(samples),
        experiments=[experiment_of(name, work)],
    )


def learning_curves_figure(works: Mapping[str, Path]) -> Figure:
    """The learning curves of one or several trainings.

    Args:
        works: the name that the figure shows → the work folder, which holds a ``train.jsonl``

    Raises:
        InputError: a ``train.jsonl`` is missing or damaged.
    """
    curves = {name: learning_curves.LearningCurves.load(work / STATISTICS) for name, work in works.items()}
    return Figure(
        title="Learning curves",
        caption="Loss in bits, without the smoothing of labels: on the training set since the point before, on the "
        "validation set after each epoch. Below, the learning rate.",
        svg=inline_svg(learning_curves.draw(curves), "learning-curves"),
    )


def spread_samples(work: Path) -> list[Sample]:
    """Five sentences, spread over the test set, with their translations in a work folder, and alignments.

    There are none before the set was translated, and none where its data is not there any more.

    Raises:
        InputError: the data was prepared anew since.
    """
    found = _results(work)
    data = results.prepared_data(found)
    if data is None or not (translation := work / "generate" / f"test.{data.preparation.target_lang}").is_file():
        return []
    sentences, translations = len(pictures.source_text(data, "test")), sum(1 for _ in read_lines(translation))
    if sentences != translations:
        raise InputError(
            f"{translation}: {translations:,} translations of {sentences:,} sentences; "
            f"translate them again with scripts/evaluate.sh"
        )
    configuration = _configuration(found)
    return pictures.aligned_samples({configuration.model if configuration else work.name: work}, data, SAMPLES)


def attention_figures(work: Path) -> list[Figure]:
    """What the model attends to in one of :func:`spread_samples`."""
    found = _results(work)
    configuration = _configuration(found)
    name = configuration.model if configuration else work.name
    return pictures.attention_figures(name, work, pictures.example(results.prepared_data(found), SAMPLES))


def _results(work: Path) -> dict[str, Any]:
    found = results.load(work)
    if not found:
        raise InputError(
            f"{work / 'results.json'}: no such file; train with scripts/train.sh first, or give its --work"
        )
    return found


def _configuration(found: Mapping[str, Any]) -> config.Configuration | None:
    if "config" not in found:
        return None
    # A relative path is that of a training that was started in the checkout.
    path = config.CHECKOUT / found["config"]
    return config.load(path) if path.is_file() else None


def _name(work: Path, configuration: config.Configuration | None) -> str:
    if configuration is not None:
        return f"{configuration.dataset}/{configuration.model}"
    return "/".join(work.resolve().parts[-2:])


def _table(heading: str, rows: Sequence[Mapping[str, str | None]], notes: Sequence[str] = ()) -> ReportTable:
    """A table of rows with the same keys; a column that is None everywhere is left out."""
    columns = [column for column in rows[0] if any(row[column] is not None for row in rows)]
    return ReportTable(heading, columns, [[row[column] or "–" for column in columns] for row in rows], list(notes))


def _scores(found: Mapping[str, Any], data: commands.PreparedData | None) -> list[ReportTable]:
    """The scores of every set that was translated; beside those of test sets the paper's."""
    name = data.preparation.splits.get("test", {}).get("name", "test") if data else "test"
    sets = {**({name: found} if "checkpoint" in found else {}), **found.get("subsets", {})}
    rows, notes = [], []
    for set_name, scores in sets.items():
        intervals = scores.get("rouge_intervals", {})
        paper = {metric: score for metric, score in _paper(found, data, set_name).items() if metric in scores}
        rows.append(
            {
                "Set": set_name,
                **{label: _score(scores.get(key), intervals.get(label)) for key, label in {**BLEU, **ROUGE}.items()},
                "The paper": " / ".join(f"{score:.2f}" for score in paper.values()) or None,
                "Difference": " / ".join(_signed(scores[metric] - score) for metric, score in paper.items()) or None,
                "Sentences per second": _score(scores.get("decode_sentences_per_second")),
            }
        )
        of_set = f"{set_name}: " if len(sets) > 1 else ""
        notes += [f"{of_set}{label}: {scores[key]}" for key, label in SIGNATURES.items() if key in scores]
    return [_table("Scores", rows, notes)] if rows else []


def _score(score: float | None, interval: Sequence[float] | None = None) -> str | None:
    if score is None:
        return None
    return f"{score:.2f} ({interval[0]:.2f}–{interval[1]:.2f})" if interval else f"{score:.2f}"


def _signed(difference: float) -> str:
    """With its sign, as typeset numbers have it."""
    return f"{round(difference, 2):+.2f}".replace("-", "−")


def _paper(found: Mapping[str, Any], data: commands.PreparedData | None, name: str) -> dict[str, float]:
    """The paper's figures for one set, by our metrics; only test sets have some."""
    paper = found.get("paper") or {}
    if name in paper:
        return {"bleu_tokenized": paper[name]}
    if not (data.preparation.split_of(name) if data else name).startswith("test"):
        return {}
    keys = {"bleu_tokenized": "bleu", **{metric: metric for metric in ROUGE}}
    return {ours: paper[key] for ours, key in keys.items() if key in paper}


def _training(found: Mapping[str, Any]) -> list[ReportTable]:
    if "updates" not in found:
        return []
    millions = (found.get("paper") or {}).get("params")
    parameters = found.get("parameters")
    row = {
        "Device": found.get("device", "unknown"),
        "Parameters": None if parameters is None else f"{parameters:,}",
        "The paper's": None if millions is None else f"{millions}M",
        "Updates": f"{found['updates']:,}",
        "Hours": f"{found['train_seconds'] / 3600:.2f}",
        "Tokens per second": f"{found['train_tokens_per_second']:,.0f}",
    }
    return [_table("Training", [row])]


def experiment_of(name: str, work: Path) -> Experiment:
    """What is needed to do the experiment of a work folder again.

    Raises:
        InputError: there is no ``results.json`` or it is damaged.
    """
    found = _results(work)
    configuration = _configuration(found)
    known = {"training": found.get("command"), "decoding": found.get("generate_command")}
    known |= {f"decoding {name}": scores.get("generate_command") for name, scores in found.get("subsets", {}).items()}
    written = datetime.datetime.fromtimestamp((work / "results.json").stat().st_mtime, datetime.timezone.utc)
    environment = {
        "Results of": f"{written:%Y-%m-%d}",
        "Device": found.get("device"),
        "Seed": found.get("seed"),
        "Checkpoint": found.get("checkpoint"),
        "Git revision": found.get("git_revision"),
        **{"Python" if package == "python" else package: v for package, v in found.get("versions", {}).items()},
    }
    return Experiment(
        name=name,
        configuration=configuration.resolved() if configuration else "",
        commands={purpose: folded(command) for purpose, command in known.items() if command},
        environment={key: str(value) for key, value in environment.items() if value is not None},
    )


def folded(command: str) -> str:
    """A command with each option on a line of its own, as it can be pasted into a shell."""
    lines = [""]
    for word in shlex.split(command):
        if word.startswith("--"):
            lines.append("")
        lines[-1] += f" {shlex.quote(word)}" if lines[-1] else shlex.quote(word)
    return " \\\n  ".join(lines)


def main(arguments: list[str]) -> None:
    """Writes the report of one experiment and prints where."""
    parser = argparse.ArgumentParser(prog="scripts/report.sh", allow_abbrev=False)
    parser.add_argument("work", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    output = options.output or options.work / "report.html"
    if output.is_dir():
        raise InputError(f"--output {output} is a folder; name a file in it")
    samples = spread_samples(options.work)
    figures = attention_figures(options.work) if samples else []
    write(experiment_report(options.work, figures, samples), output)
    print(output)


if __name__ == "__main__":
    commands.main_of(main)
