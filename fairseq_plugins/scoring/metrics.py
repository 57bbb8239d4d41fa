"""Metrics: the one place that knows what outputs are scored by. Everybody else asks a :class:`Metric`, whichever it is.

A metric of your own is a file that a configuration names (``extensions: [my_metric.py]``), with a class and its
registration::

    class OutputPerplexity(Metric):
        name, label = "output_perplexity", "perplexity of the outputs"
        columns = (Column("output_perplexity", "perplexity of the outputs", higher_is_better=False),)

        def statistics(self, outputs, references):
            return np.array([[-sum(line), len(line)] for line in self.log_probabilities(outputs)])

        def scores_of(self, summed):
            return np.exp(summed[:1] / summed[1])

    register_metric(OutputPerplexity())
"""

from __future__ import annotations

import argparse
import copy
import importlib
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import InputError, nearest
from ..files import read_lines
from .significance import SAMPLES, SEED, Comparison, bootstrap_intervals, paired_bootstrap

if TYPE_CHECKING:  # as in significance.py
    import numpy as np

BUILT_IN = {
    **{name: f".{name}" for name in ("bleu", "rouge")},
    "rouge_lsum": ".rouge",
    **dict.fromkeys(("chrf", "ter"), ".chrf_and_ter"),
    **dict.fromkeys(("exact_match", "cer"), ".transduction"),
    **{name: f".{name}" for name in ("accuracy", "ranking", "copy_memory")},
    **{name: ".likelihood" for name in ("perplexity", "bits_per_character")},
    **dict.fromkeys(("answers", "squad"), ".answers"),
}
"""Name → the module that registers it, imported when it is asked for."""

_metrics: dict[str, Metric] = {}


@dataclass(frozen=True)
class Outputs:
    """What a system made of N sentences.

    Attributes:
        tokens: N lines of tokens
        text: N lines of text
        log_probabilities: of each line the natural logarithm of the probability of every token that the model produced
            or read, the end of the sentence included; None where nobody kept it
    """

    tokens: Sequence[str]
    text: Sequence[str]
    log_probabilities: Sequence[Sequence[float]] | None = None


@dataclass(frozen=True)
class References:
    """What N sentences should become, in one or several ways.

    Attributes:
        tokens: one or several lists of N lines of tokens
        text: the same as text
        lowercase: whether case does not count
        language: the name of the target's side, such as ``de``; empty where nobody says
    """

    tokens: Sequence[Sequence[str]]
    text: Sequence[Sequence[str]]
    lowercase: bool = False
    language: str = ""


@dataclass(frozen=True)
class Column:
    """One number of a metric.

    Attributes:
        key: in ``results.json``
        label: in tables
        name: where it stands alone; the label unless it is given
        higher_is_better: whether the better of two systems has more of it
        form: how it is written, as in ``format``
        signature: the key in ``results.json`` of how it was computed; ``<key>_signature`` unless it is given
        paper: the key of the papers' figures in ``configs/tables``; None where they have none
        largest: the largest value that there is; None where there is no limit
        digits: after the decimal point, in ``results.json``
    """

    key: str
    label: str
    name: str = ""
    higher_is_better: bool = True
    form: str = ".2f"
    signature: str = ""
    paper: str | None = None
    largest: float | None = None
    digits: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.label)
        object.__setattr__(self, "signature", self.signature or f"{self.key}_signature")

    def advance(self, difference: float) -> float:
        """How much better a system is that has ``difference`` more."""
        return difference if self.higher_is_better else -difference

    def comparative(self, difference: float) -> str:
        """``better``, ``worse`` or ``equal``: what a system is that has ``difference`` more."""
        advance = self.advance(difference)
        return "better" if advance > 0 else "worse" if advance < 0 else "equal"


class Metric(ABC):
    """A way to score outputs: one number or several that belong together.

    A metric says what it sums over the sentences (:meth:`statistics`), and what the sums come to (:meth:`scores_of`).
    From these follow the score of a file and of each sentence, the comparison of two systems, and scores by length.
    """

    name: ClassVar[str]
    """In ``preparation.json``, configurations and ``configs/tables``."""
    label: ClassVar[str]
    """What people call it."""
    columns: tuple[Column, ...]
    """Its numbers, in the order of tables."""
    decoding: ClassVar[str] = "generate"
    """How the outputs that it scores are made: a key of ``experiments.decoding.DECODINGS``."""
    significance_test: ClassVar[str] = "paired bootstrap (1,000 samples, as strict as a one-sided test)"
    """What :meth:`compare` does."""
    unit: ClassVar[str] = "sentences"
    """What the rows of :meth:`statistics` are called, and the scores of :meth:`sentence_scores` are of."""
    options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Its own options in commands that score files: name → what argparse takes."""
    tokenize_option: ClassVar[str] = ""
    """That which says what cuts text into tokens, where the language does not decide; evaluations and configurations
    take it too. Empty where there is none."""
    tokenizers: ClassVar[tuple[str, ...]] = ()
    """What it may say."""
    tokenize_help: ClassVar[str] = ""
    tokenizer: str | None = None
    """What it says; None where the language decides."""

    @abstractmethod
    def statistics(self, outputs: Outputs, references: References) -> np.ndarray:
        """What the numbers are made of: (N, K), a row for each sentence, or for each token, document, … that counts."""

    @abstractmethod
    def scores_of(self, summed: np.ndarray) -> np.ndarray:
        """The numbers, (columns,), of rows of :meth:`statistics` summed up, (K,)."""

    @property
    def title(self) -> str:
        """What the papers' figures of it are called all together."""
        return self.label

    @property
    def main(self) -> Column:
        """The number that is shown where there is room for one."""
        return self.columns[0]

    @property
    def sentence_label(self) -> str:
        """What the scores of single sentences are called."""
        return self.main.name

    @property
    def signature_labels(self) -> dict[str, str]:
        """Key of a signature in ``results.json`` → what was computed so."""
        return {column.signature: column.label for column in self.columns}

    @property
    def keys_of_scores(self) -> list[str]:
        """What :meth:`scores` writes into ``results.json``."""
        return [*(key for column in self.columns for key in (column.key, column.signature)), f"{self.name}_intervals"]

    def only(self, *keys: str) -> Metric:
        """The same metric with some of its columns."""
        metric = copy.copy(self)
        metric.columns = tuple(column for column in self.columns if column.key in keys)
        return metric

    def tokenized_by(self, tokenizer: str | None) -> Metric:
        """The same metric as its ``tokenize_option`` wants it; None leaves it as it is.

        Raises:
            InputError: there is no such tokenizer.
        """
        if tokenizer is None:
            return self
        if tokenizer not in self.tokenizers:
            raise InputError(
                f"{self.tokenize_option} {tokenizer}: choose one of {', '.join(self.tokenizers)}"
                f"{nearest(tokenizer, self.tokenizers)}"
            )
        metric = copy.copy(self)
        metric.tokenizer = tokenizer
        return metric

    def remarks(self, references: References) -> list[str]:
        """What to know of how outputs are scored against these references, a line each: why text is cut as it is, and
        warnings. It can be asked before there are outputs.

        Raises:
            InputError: what cuts the text is not installed.
        """
        return []

    def signature(self, column: Column, references: References, bootstrap: str | None = None) -> str:
        """How a number was computed, in sacreBLEU's manner.

        Args:
            column: the number
            references: what the outputs were compared with
            bootstrap: samples and seed, ``bs:1000|seed:12345``, where sentences were sampled
        """
        parts = [f"nrefs:{len(references.text)}", bootstrap, self.name]
        return "|".join(part for part in parts if part)

    def scores(self, outputs: Outputs, references: References) -> dict[str, Any]:
        """What ``results.json`` says of a system: each column and its signature."""
        values = self.scores_of(self.statistics(outputs, references).sum(axis=0))
        scores: dict[str, Any] = {}
        for column, value in zip(self.columns, values, strict=True):
            scores[column.key] = round(float(value), column.digits)
            scores[column.signature] = self.signature(column, references)
        return scores

    def interval(self, scores: Mapping[str, Any], column: Column) -> tuple[float, float] | None:
        """The 95 % interval of a number in ``results.json``, where the metric has one there."""
        interval: tuple[float, float] | None = scores.get(f"{self.name}_intervals", {}).get(column.label)
        return interval

    def explanations(self, scores: Mapping[str, Any]) -> list[str]:
        """How the numbers in ``results.json`` were computed, a line for each signature."""
        return [f"{label}: {scores[key]}" for key, label in self.signature_labels.items() if key in scores]

    def sentence_scores(self, outputs: Outputs, references: References) -> np.ndarray:
        """The main number of each sentence by itself, (N,)."""
        import numpy as np

        single = self.only(self.main.key)
        return np.array([single.scores_of(row)[0] for row in single.statistics(outputs, references)])

    def compare(
        self,
        baseline: Outputs,
        system: Outputs,
        references: References,
        *,
        samples: int = SAMPLES,
        seed: int = SEED,
    ) -> dict[str, Comparison]:
        """Whether two systems differ by more than chance, by column's key: paired bootstrap over the rows.

        Args:
            baseline, system: of the same sentences
            references: of these
            samples: of the test set
            seed: of the sampling, at least 1

        Raises:
            ValueError: no rows, different numbers of them, no sample, or a seed below 1.
        """
        rows = [self.statistics(outputs, references) for outputs in (baseline, system)]
        compared = self.compare_statistics(*rows, samples=samples, seed=seed)
        return {
            column.key: compared[column.key].signed(self.signature(column, references, compared[column.key].signature))
            for column in self.columns
        }

    def compare_statistics(
        self, baseline: np.ndarray, system: np.ndarray, *, samples: int = SAMPLES, seed: int = SEED
    ) -> dict[str, Comparison]:
        """What :meth:`compare` says of rows of :meth:`statistics`; its signature is that of the test alone.

        Args:
            baseline, system: (N, K), of the same sentences
            samples, seed, and what is raised: as for :meth:`compare`
        """
        compared = paired_bootstrap(baseline, system, self.scores_of, samples=samples, seed=seed)
        return {column.key: comparison for column, comparison in zip(self.columns, compared, strict=True)}

    def paper_figures(self, row: Mapping[str, Any], subset: str) -> dict[str, float]:
        """The paper's figures in a row of ``configs/tables``, by column's key; for one of several sets, by its name."""
        papers = {column.key: column.paper for column in self.columns if column.paper is not None}
        if papers and subset in row:
            return {next(iter(papers)): row[subset]}
        return {key: row[paper] for key, paper in papers.items() if paper in row}

    def read(self, path: Path) -> Outputs:
        """A file of outputs, one line for each sentence.

        Raises:
            InputError: there is no such file, or a line is not what this metric scores.
        """
        lines = list(read_lines(path))
        return Outputs(lines, lines)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds the metric's own options to a command that scores files."""
        for name, settings in self.options.items():
            parser.add_argument(f"--{name}", **settings)
        if self.tokenize_option:
            parser.add_argument(f"--{self.tokenize_option}", metavar="NAME", help=self.tokenize_help)

    def configured(self, arguments: argparse.Namespace) -> Metric:
        """The metric as its own options want it."""
        return self

    def log_probabilities(self, outputs: Outputs) -> Sequence[Sequence[float]]:
        """The outputs' logarithms of probabilities, for a metric that cannot do without.

        Raises:
            InputError: nobody kept them.
        """
        if outputs.log_probabilities is None:
            raise InputError(
                f"{self.label} needs the probability of each token; translate with 'fairseq-plugins evaluate' again"
            )
        return outputs.log_probabilities


def check_lengths(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raises ValueError unless each of the references, one list or several, has as many lines as there are hypotheses.

    sacrebleu leaves out what has no partner, so that a list of references for each hypothesis scores the first alone.
    """
    lengths = [len(lines) for lines in references]
    if not lengths or {*lengths} != {len(hypotheses)}:
        counts = ", ".join(map(str, lengths)) or "none"
        raise ValueError(f"{len(hypotheses)} hypotheses, but references: {counts}; give lists of as many lines")


class SampledMetric(Metric):
    """A metric of one column whose 95 % interval stands in ``results.json``."""

    @property
    def signature_labels(self) -> dict[str, str]:
        return {self.main.signature: f"{self.main.label} with 95 % intervals"}

    def scores(self, outputs: Outputs, references: References) -> dict[str, Any]:
        rows = self.statistics(outputs, references)
        [value], [ends] = self.scores_of(rows.sum(axis=0)), bootstrap_intervals(rows, self.scores_of)
        column = self.main
        return {
            column.key: round(float(value), column.digits),
            f"{self.name}_intervals": {column.label: [round(end, column.digits) for end in ends]},
            column.signature: self.signature(column, references, f"bs:{SAMPLES}|seed:{SEED}"),
        }


def register_metric(metric: Metric) -> None:
    """Makes a metric known under its name.

    Raises:
        ValueError: another one has this name.
    """
    registered = _metrics.setdefault(metric.name, metric)
    if type(registered) is not type(metric):
        raise ValueError(f"there is a metric '{metric.name}' already, {type(registered).__qualname__}")


def metric_named(name: str) -> Metric:
    """The metric that goes by a name.

    Raises:
        InputError: there is none.
    """
    if name not in _metrics and name in BUILT_IN:
        importlib.import_module(BUILT_IN[name], __package__)
    if name not in _metrics:
        names = sorted({*_metrics, *BUILT_IN})
        raise InputError(
            f"there is no metric '{name}'{nearest(name, names)}; there are {', '.join(names)}, "
            f"and your own where a configuration's 'extensions' names its file"
        )
    return _metrics[name]


def metrics_named(names: str, option: str) -> list[Metric]:
    """The metrics of a list with commas, the main one first, each once.

    Args:
        names: the list
        option: that it is the value of, in errors

    Raises:
        InputError: the list is empty, there is no such metric, or two of them do not score the same outputs.
    """
    metrics = [metric_named(name) for name in dict.fromkeys(filter(None, names.split(",")))]
    if not metrics:
        raise InputError(f"{option} {names}: give one name or several, such as bleu,chrf,ter")
    if len({metric.decoding for metric in metrics}) > 1:
        labels = " and ".join(metric.label for metric in metrics)
        raise InputError(f"{option} {names}: {labels} do not score the same outputs; give each by itself")
    return metrics


def all_metrics() -> list[Metric]:
    """Every metric: those that are built in, then the user's own."""
    return [metric_named(name) for name in dict.fromkeys([*BUILT_IN, *_metrics])]


def metrics_of(keys: Container[str]) -> list[Metric]:
    """The metrics that have a number among the keys of a ``results.json``."""
    return [metric for metric in all_metrics() if any(column.key in keys for column in metric.columns)]


def read_numbers(path: Path) -> list[list[float]]:
    """Numbers, several on each line, separated by spaces.

    Raises:
        InputError: there is no such file, or something else is in it; the message names file and line.
    """
    rows = []
    for place, line in enumerate(read_lines(path), start=1):
        try:
            rows.append([float(text) for text in line.split()])
        except ValueError as error:
            raise InputError(f"{path}, line {place}: {error}; numbers between spaces are wanted") from None
    return rows
