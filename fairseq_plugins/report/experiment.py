"""The page of one experiment, or of several side by side, from their work folders."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ..corpora.pairs import PairsPreparation
from ..decoding.flows import FLOWS, gate_label
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..experiments.run import RESULTS, Run, overview
from ..files import read_lines
from ..scoring.metrics import Column, Metric, metrics_of
from ..terminal import cell
from . import confusion_matrices, progress, sections
from .answers import answers_table
from .page import Drawing, Experiment, Report, ReportTable, Sample
from .surprise import surprise_figures

SAMPLES = 5


def experiment_report(run: Run, figures: Sequence[Drawing] = (), samples: Sequence[Sample] = ()) -> Report:
    """The report of one experiment: ``results.json``, ``train.jsonl`` and the configuration.

    Args:
        run: where ``fairseq-plugins train`` and ``fairseq-plugins evaluate`` wrote
        figures: shown after the learning curves
        samples: sentences of the test set

    Raises:
        InputError: a file of the folder is damaged.
    """
    results, data, name = run.results, run.data, _name(run)
    curves = sections.learning_curves_figure({name: run}) if run.statistics.is_file() else None
    matrices = confusion_matrices.figures({name: run}, data) if data else []
    if data:
        matrices = progress.figures({name: run}, data.preparation.metric) + matrices
    picked = [*confusion_matrices.picked_words_table(run, data), *answers_table(run, data)] if data else []
    facts = [
        f"Architecture {results['architecture']}" if "architecture" in results else "",
        f"{results['parameters']:,} parameters" if results.get("parameters") is not None else "",
        f"{results['updates']:,} updates" if "updates" in results else "",
        f"seed {results['seed']}" if "seed" in results else "",
    ]
    return Report(
        title=name,
        subtitle=", ".join(filter(None, facts)) or "An experiment of fairseq-plugins",
        notice=None,
        tables=[*_scores(run), *_training(results), *_attention(results), *picked],
        figures=[*([curves] if curves else []), *matrices, *figures, *surprise_figures({name: run})],
        samples=list(samples),
        experiments=[experiment_of(name, run)],
    )


def systems_report(runs: Mapping[str, Run], title: str, subtitle: str, notice: str | None) -> Report:
    """Several systems on one page: scores, learning curves, what the first trained one attends to, and samples.

    Args:
        runs: by their systems' names, of the same data; one that was not trained has scores alone
        title, subtitle, notice: of the page

    Raises:
        InputError: a file of the folders is damaged.
    """
    rows, explanations = overview(runs)
    shown = [[cell(value) for value in row.values()] for row in rows]
    trained = {name: run for name, run in runs.items() if run.statistics.is_file()}
    figures: list[Drawing] = []
    samples: list[Sample] = []
    if trained:
        figures += [sections.learning_curves_figure(trained), *surprise_figures(trained)]
    prepared = next((run.data for run in runs.values() if run.data), None)
    if prepared:
        figures += progress.figures(trained, prepared.preparation.metric)
        figures += confusion_matrices.figures(trained, prepared)
    translated = {name: data for name, run in trained.items() if (data := _translated_data(run)) is not None}
    if translated:
        sources = {name: sections.source_text(data, "test") for name, data in translated.items()}
        if len({len(lines) for lines in sources.values()}) > 1:
            shown_counts = ", ".join(f"{name} {len(lines):,}" for name, lines in sources.items())
            raise InputError(f"their test sets differ ({shown_counts} sentences); give systems of the same data")
        if len({tuple(lines) for lines in sources.values()}) > 1:
            raise InputError(f"the test sets of {', '.join(sources)} differ; give systems of the same data")
        first, data = next(iter(translated.items()))
        figures += sections.attention_figures(first, runs[first], sections.example(data, SAMPLES))
        samples = sections.aligned_samples({name: runs[name] for name in translated}, data, SAMPLES)
    return Report(
        title,
        subtitle,
        notice,
        [ReportTable("Scores on the test set", list(rows[0]), shown, explanations)],
        figures,
        samples,
        [experiment_of(name, run) for name, run in trained.items()],
    )


def spread_samples(run: Run) -> list[Sample]:
    """Five sentences, spread over the test set, with a run's translations, and alignments.

    There are none before the set was translated, none where the training has gone on since, and none where its data is
    not there any more.

    Raises:
        InputError: the data was prepared anew since.
    """
    data = _translated_data(run)
    return [] if data is None else sections.aligned_samples({_system(run): run}, data, SAMPLES)


def attention_figures(run: Run) -> list[Drawing]:
    """What the model attends to in one of :func:`spread_samples`."""
    data = run.data
    return [] if data is None else sections.attention_figures(_system(run), run, sections.example(data, SAMPLES))


def _system(run: Run) -> str:
    return run.configuration.model if run.configuration else run.folder.name


def _translated_data(run: Run) -> PreparedData | None:
    """The data whose test set a run has translated; None before that, where the training has gone on since,
    and where the data is not there any more."""
    data = run.data if run.is_evaluated else None
    if data is None or not isinstance(data.preparation, PairsPreparation):
        return None
    translation = run.outputs_folder / f"test.{data.pairs.target_lang}"
    if not translation.is_file():
        return None
    sentences, translations = len(sections.source_text(data, "test")), sum(1 for _ in read_lines(translation))
    if sentences != translations:
        raise InputError(
            f"{translation}: {translations:,} translations of {sentences:,} sentences; "
            f"translate them again with 'fairseq-plugins evaluate'"
        )
    return data


def _name(run: Run) -> str:
    if run.configuration is not None:
        return f"{run.configuration.dataset}/{run.configuration.model}"
    return "/".join(run.folder.resolve().parts[-2:])


def _table(heading: str, rows: Sequence[Mapping[str, str | None]], notes: Sequence[str] = ()) -> ReportTable:
    """A table of rows with the same keys; a column that is None everywhere is left out."""
    columns = [column for column in rows[0] if any(row[column] is not None for row in rows)]
    return ReportTable(heading, columns, [[row[column] or "–" for column in columns] for row in rows], list(notes))


def _scores(run: Run) -> list[ReportTable]:
    """The scores of every set that was translated; beside those of test sets the paper's."""
    results, data = run.results, run.data
    name = data.preparation.splits.get("test", {}).get("name", "test") if data else "test"
    sets = {**({name: results} if run.is_evaluated else {}), **results.get("subsets", {})}
    rows, notes = [], []
    for set_name, scores in sets.items():
        metrics = metrics_of(scores)
        paper = _paper(results, data, set_name, metrics)
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
    results: Mapping[str, Any], data: PreparedData | None, name: str, metrics: Sequence[Metric]
) -> dict[str, float]:
    """The paper's figures for one set, by our metrics' columns; only test sets have some."""
    paper = results.get("paper") or {}
    if name not in paper and not (data.preparation.split_of(name) if data else name).startswith("test"):
        return {}
    return {key: figure for metric in metrics for key, figure in metric.paper_figures(paper, name).items()}


def _training(results: Mapping[str, Any]) -> list[ReportTable]:
    if "updates" not in results:
        return []
    millions = (results.get("paper") or {}).get("params")
    parameters = results.get("parameters")
    row = {
        "Device": results.get("device", "unknown"),
        "Parameters": None if parameters is None else f"{parameters:,}",
        "The paper's": None if millions is None else f"{millions}M",
        "Updates": f"{results['updates']:,}",
        "Hours": f"{results['train_seconds'] / 3600:.2f}",
        "Tokens per second": f"{results['train_tokens_per_second']:,.0f}",
    }
    return [_table("Training", [row])]


def _attention(results: Mapping[str, Any]) -> list[ReportTable]:
    """How a model with several attention flows, or gates, has learned to use them; its warnings are notes."""
    attention = results.get("attention")
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


def experiment_of(name: str, run: Run) -> Experiment:
    """What is needed to do the experiment of a run again."""
    results = run.results
    commands = {"training": results.get("command"), "evaluation": results.get("evaluate_command")}
    subsets = results.get("subsets", {})
    commands |= {f"evaluation of {subset}": scores.get("evaluate_command") for subset, scores in subsets.items()}
    written = datetime.datetime.fromtimestamp((run.folder / RESULTS).stat().st_mtime, datetime.timezone.utc)
    environment = {
        "Results of": f"{written:%Y-%m-%d}",
        "Device": results.get("device"),
        "Seed": results.get("seed"),
        "Checkpoint": results.get("checkpoint"),
        "Git revision": results.get("git_revision"),
        **{"Python" if package == "python" else package: v for package, v in results.get("versions", {}).items()},
    }
    return Experiment(
        name=name,
        configuration=_configuration(run),
        commands={purpose: folded(command) for purpose, command in commands.items() if command},
        environment={key: str(value) for key, value in environment.items() if value is not None},
    )


def _configuration(run: Run) -> str:
    """The configuration as it is today, with a note of what the training had otherwise; empty where there is none."""
    configuration, trained = run.configuration, run.options
    if configuration is None:
        return ""
    differing = [
        f"# The training had {key} {trained.get(key, '(not given)')}.\n"
        for key, value in configuration.train.items()
        if trained and value.text != "false" and trained.get(key) != value.text
    ]
    return "".join(differing) + configuration.resolved()


def folded(command: str) -> str:
    """A command with each option on a line of its own, as it can be pasted into a shell."""
    lines = [""]
    for word in shlex.split(command):
        if word.startswith("--"):
            lines.append("")
        lines[-1] += f" {shlex.quote(word)}" if lines[-1] else shlex.quote(word)
    return " \\\n  ".join(lines)
