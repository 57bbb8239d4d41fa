"""The page of one experiment, or of several side by side, from their work folders."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.flows import FLOWS, gate_label
from ..corpora.pairs import PairsPreparation
from ..errors import InputError
from ..experiments import configuration as configurations
from ..experiments import results
from ..experiments.configuration import Configuration
from ..experiments.fairseq_commands import option
from ..experiments.prepared_data import PreparedData
from ..experiments.training_statistics import STATISTICS
from ..files import read_lines
from ..scoring.metrics import Column, Metric, metrics_of
from ..terminal import cell
from . import classification, progress, sections
from .page import Drawing, Experiment, Report, ReportTable, Sample
from .surprise import surprise_figures

SAMPLES = 5


def experiment_report(work: Path, figures: Sequence[Drawing] = (), samples: Sequence[Sample] = ()) -> Report:
    """The report of one experiment from its work folder: ``results.json``, ``train.jsonl`` and the configuration.

    Args:
        work: where ``fairseq-plugins train`` and ``fairseq-plugins evaluate`` wrote
        figures: shown after the learning curves
        samples: sentences of the test set

    Raises:
        InputError: there is no ``results.json`` or it is damaged, as are other files of the folder.
    """
    found = _results(work)
    configuration = _configuration(found)
    data = results.prepared_data(found)
    name = _name(work, configuration)
    curves = sections.learning_curves_figure({name: work}) if (work / STATISTICS).is_file() else None
    matrices = classification.figures({name: work}, data) if data else []
    if data:
        matrices = progress.figures({name: work}, data.preparation.metric) + matrices
    picked = classification.picked_words_table(work, data) if data else []
    facts = [
        f"Architecture {architecture}" if (architecture := option(results.command(found), "--arch", "-a")) else "",
        f"{found['parameters']:,} parameters" if found.get("parameters") is not None else "",
        f"{found['updates']:,} updates" if "updates" in found else "",
        f"seed {found['seed']}" if "seed" in found else "",
    ]
    return Report(
        title=name,
        subtitle=", ".join(filter(None, facts)) or "An experiment of fairseq-plugins",
        notice=None,
        tables=[*_scores(found, data), *_training(found), *_attention(found), *picked],
        figures=[*([curves] if curves else []), *matrices, *figures, *surprise_figures({name: work})],
        samples=list(samples),
        experiments=[experiment_of(name, work)],
    )


def systems_report(works: Mapping[str, Path], title: str, subtitle: str, notice: str | None) -> Report:
    """Several systems on one page: scores, learning curves, what the first trained one attends to, and samples.

    Args:
        works: system → work folder, of the same data; one that was not trained has scores alone
        title, subtitle, notice: of the page

    Raises:
        InputError: there is no ``results.json`` or it is damaged, as are other files of the folders.
    """
    found = {name: _results(work) for name, work in works.items()}
    rows, explanations = results.overview(works)
    shown = [[cell(value) for value in row.values()] for row in rows]
    trained = {name: work for name, work in works.items() if (work / STATISTICS).is_file()}
    figures: list[Drawing] = []
    samples: list[Sample] = []
    if trained:
        figures += [sections.learning_curves_figure(trained), *surprise_figures(trained)]
    prepared = next(filter(None, map(results.prepared_data, found.values())), None)
    if prepared:
        figures += progress.figures(trained, prepared.preparation.metric) + classification.figures(trained, prepared)
    known = {name: _translated_data(work, found[name]) for name, work in trained.items()}
    translated = {name: data for name, data in known.items() if data is not None}
    if translated:
        counts = {name: len(sections.source_text(data, "test")) for name, data in translated.items()}
        if len(set(counts.values())) > 1:
            shown_counts = ", ".join(f"{name} {count:,}" for name, count in counts.items())
            raise InputError(f"their test sets differ ({shown_counts} sentences); give systems of the same data")
        first, data = next(iter(translated.items()))
        figures += sections.attention_figures(first, works[first], sections.example(data, SAMPLES))
        samples = sections.aligned_samples({name: works[name] for name in translated}, data, SAMPLES)
    return Report(
        title,
        subtitle,
        notice,
        [ReportTable("Scores on the test set", list(rows[0]), shown, explanations)],
        figures,
        samples,
        [experiment_of(name, work) for name, work in trained.items()],
    )


def spread_samples(work: Path) -> list[Sample]:
    """Five sentences, spread over the test set, with their translations in a work folder, and alignments.

    There are none before the set was translated, none where the training has gone on since, and none where its data is
    not there any more.

    Raises:
        InputError: the data was prepared anew since.
    """
    found = _results(work)
    data = _translated_data(work, found)
    if data is None:
        return []
    configuration = _configuration(found)
    return sections.aligned_samples({configuration.model if configuration else work.name: work}, data, SAMPLES)


def attention_figures(work: Path) -> list[Drawing]:
    """What the model attends to in one of :func:`spread_samples`."""
    found = _results(work)
    configuration = _configuration(found)
    name = configuration.model if configuration else work.name
    data = results.prepared_data(found)
    return [] if data is None else sections.attention_figures(name, work, sections.example(data, SAMPLES))


def _results(work: Path) -> dict[str, Any]:
    found = results.required(work)
    results.load_extensions(found)
    return found


def _translated_data(work: Path, found: Mapping[str, Any]) -> PreparedData | None:
    """The data whose test set was translated in a work folder; None before that, where the training has gone on since,
    and where the data is not there any more."""
    data = results.prepared_data(found) if results.is_evaluated(found) else None
    if data is None or not isinstance(data.preparation, PairsPreparation):
        return None
    translation = work / "generate" / f"test.{data.pairs.target_lang}"
    if not translation.is_file():
        return None
    sentences, translations = len(sections.source_text(data, "test")), sum(1 for _ in read_lines(translation))
    if sentences != translations:
        raise InputError(
            f"{translation}: {translations:,} translations of {sentences:,} sentences; "
            f"translate them again with 'fairseq-plugins evaluate'"
        )
    return data


def _configuration(found: Mapping[str, Any]) -> Configuration | None:
    path = results.configuration_path(found)
    return configurations.load(path) if path is not None and path.is_file() else None


def _name(work: Path, configuration: Configuration | None) -> str:
    if configuration is not None:
        return f"{configuration.dataset}/{configuration.model}"
    return "/".join(work.resolve().parts[-2:])


def _table(heading: str, rows: Sequence[Mapping[str, str | None]], notes: Sequence[str] = ()) -> ReportTable:
    """A table of rows with the same keys; a column that is None everywhere is left out."""
    columns = [column for column in rows[0] if any(row[column] is not None for row in rows)]
    return ReportTable(heading, columns, [[row[column] or "–" for column in columns] for row in rows], list(notes))


def _scores(found: Mapping[str, Any], data: PreparedData | None) -> list[ReportTable]:
    """The scores of every set that was translated; beside those of test sets the paper's."""
    name = data.preparation.splits.get("test", {}).get("name", "test") if data else "test"
    sets = {**({name: found} if results.is_evaluated(found) else {}), **found.get("subsets", {})}
    rows, notes = [], []
    for set_name, scores in sets.items():
        metrics = metrics_of(scores)
        paper = _paper(found, data, set_name, metrics)
        compared = [c for metric in metrics for c in metric.columns if c.key in paper and c.key in scores]
        rows.append(
            {
                "Set": set_name,
                **{c.label: _score(scores, metric, c) for metric in metrics_of(_keys(sets)) for c in metric.columns},
                "The paper": " / ".join(f"{paper[c.key]:{c.form}}" for c in compared) or None,
                "Difference": " / ".join(_signed(scores[c.key] - paper[c.key], c) for c in compared) or None,
                "Sentences per second": _number(scores.get("decode_sentences_per_second")),
            }
        )
        of_set = f"{set_name}: " if len(sets) > 1 else ""
        notes += [f"{of_set}{line}" for metric in metrics for line in metric.explanations(scores)]
    return [_table("Scores", rows, notes)] if rows else []


def _keys(sets: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {key for scores in sets.values() for key in scores}


def _score(scores: Mapping[str, Any], metric: Metric, column: Column) -> str | None:
    """A number with its interval, where the metric has one."""
    if column.key not in scores:
        return None
    interval = metric.interval(scores, column)
    shown = f"{scores[column.key]:{column.form}}"
    return f"{shown} ({interval[0]:{column.form}}–{interval[1]:{column.form}})" if interval else shown


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def _signed(difference: float, column: Column) -> str:
    """With its sign, as typeset numbers have it."""
    return f"{difference:+{column.form}}".replace("-", "−")


def _paper(
    found: Mapping[str, Any], data: PreparedData | None, name: str, metrics: Sequence[Metric]
) -> dict[str, float]:
    """The paper's figures for one set, by our metrics' columns; only test sets have some."""
    paper = found.get("paper") or {}
    if name not in paper and not (data.preparation.split_of(name) if data else name).startswith("test"):
        return {}
    return {key: figure for metric in metrics for key, figure in metric.paper_figures(paper, name).items()}


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


def _attention(found: Mapping[str, Any]) -> list[ReportTable]:
    """How a model with several attention flows, or gates, has learned to use them; its warnings are notes."""
    attention = found.get("attention")
    if attention is None:
        return []
    flows = [
        {"Attention": FLOWS.get(name, name), "Entropy (nats)": f"{value:.3f}"}
        for name, value in attention["entropy"].items()
    ]
    flows.append({"Attention": "looking everywhere alike", "Entropy (nats)": f"{attention['uniform']:.3f}"})
    gates = [
        {"Gates": gate_label(name), "Mean": ", ".join(f"{share:.3f}" for share in layers)}
        for name, layers in attention["gates"].items()
    ]
    warnings = [f"Warning: {warning}." for warning in attention["warnings"]]
    tables = [_table("Attention over the development set", flows, [] if gates else warnings)]
    return tables + ([_table("Gates over the development set", gates, warnings)] if gates else [])


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
