"""A system beside others on one test set: by how much it is better, whether by chance, and where (DPN-S2S, Table 6).

The paper's table shows one sentence that DPN-S2S has right and its two single paths have wrong, chosen by its authors.
Here the sentences are those where the last system is furthest ahead of the best of the others, and where it is furthest
behind the worst of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ..errors import InputError
from ..scoring.metrics import Metric, Outputs, References
from ..scoring.significance import SEED, Comparison
from ..terminal import table
from . import systems
from .result import Analysis, Panel

SENTENCES = 10


@dataclass(frozen=True)
class SentenceComparison:
    """What the systems made of one sentence.

    Attributes:
        number: its line, from 1 on.
        source: what was to be translated or summarised.
        references: what it should become.
        outputs: of each system, by its name.
        scores: of the sentence by itself: its BLEU, its ROUGE-L ….
        difference: the last system's score less that of the nearest of the others.
    """

    number: int
    source: str
    references: list[str]
    outputs: dict[str, str]
    scores: dict[str, float]
    difference: float


@dataclass(frozen=True)
class ComparisonReport:
    """Systems on one test set of N sentences.

    Attributes:
        systems: the names of the baselines, and of the system that is compared with them, the last.
        comparisons: of the whole test set; by the metric's name: BLEU, or ROUGE-1, -2 and -L. Of several baselines each
            by the metric's name and the baseline: ``BLEU, CNN``.
        sentence_metric: what the sentences are compared by.
        unit: ``sentences``, or what the metric is made of in their place: then there are N of them.
        higher_is_better: whether the better sentence has the higher score.
        largest: the largest score that a sentence can have; None where there is no limit.
        differences: (N,), the last system's score of each sentence less that of the others: of the best of them where
            it is ahead of all, of the worst where it is behind all, else 0.
        better: the sentences where the last system is furthest ahead, the furthest first.
        worse: those where the others are.
            Of a metric that is not made of sentences, both are empty.
    """

    systems: tuple[str, ...]
    comparisons: dict[str, Comparison]
    sentence_metric: str
    unit: str
    higher_is_better: bool
    largest: float | None
    differences: list[float]
    better: list[SentenceComparison]
    worse: list[SentenceComparison]

    @property
    def others(self) -> str:
        """What the last system is compared with is called."""
        return self.systems[0] if len(self.systems) == 2 else "the others"

    @property
    def counts(self) -> tuple[int, int, int]:
        """In how many sentences the others are better, none of both, the last system is better."""
        rising, falling = (sum(sign * difference > 0 for difference in self.differences) for sign in (1, -1))
        equal = len(self.differences) - rising - falling
        return (falling, equal, rising) if self.higher_is_better else (rising, equal, falling)


def compare(
    outputs: Mapping[str, Outputs],
    source: Sequence[str],
    references: References,
    metric: Metric,
    further: Sequence[Metric] = (),
    *,
    sentences: int = SENTENCES,
    seed: int = SEED,
) -> ComparisonReport:
    """Compares a system with others, as a whole and sentence by sentence.

    Args:
        outputs: of each of two or more, by their names; the last is compared with the others.
        source: N sentences.
        references: of these.
        metric: what they are compared by.
        further: what else they are compared by as a whole.
        sentences: how many are shown for either side, at most.
        seed: of the bootstrap.

    Raises:
        ValueError: fewer than two systems, no sentences, or lists of different length.
    """
    if len(outputs) < 2 or any(len(source) != len(output.text) for output in outputs.values()):
        raise ValueError("two systems or more and a source of their length are needed")
    *baselines, system = outputs
    metrics = (metric, *further)
    columns = [column for scored in metrics for column in scored.columns]
    names = [column.name for column in columns]
    comparisons = {}
    for baseline in baselines:
        pair = outputs[baseline], outputs[system]
        compared = {k: c for scored in metrics for k, c in scored.compare(*pair, references, seed=seed).items()}
        for column in columns:
            name = column.name if names.count(column.name) == 1 else column.label
            comparisons[name if len(baselines) == 1 else f"{name}, {baseline}"] = compared[column.key]
    # A perfect sentence has 100 only up to the last bits, which must make no system the better one.
    scores = np.round([metric.sentence_scores(output, references) for output in outputs.values()], 9)
    direction = metric.main.advance(1.0)
    margins = direction * (scores[-1] - scores[:-1])
    # Ahead of all others by the least margin, behind all of them by the least.
    advances = np.where(margins.min(0) > 0, margins.min(0), np.where(margins.max(0) < 0, margins.max(0), 0.0))
    differences = direction * advances

    def shown(index: int) -> SentenceComparison:
        return SentenceComparison(
            int(index) + 1,
            source[index],
            [lines[index] for lines in references.text],
            {name: output.text[index] for name, output in outputs.items()},
            {name: float(of_system[index]) for name, of_system in zip(outputs, scores, strict=True)},
            float(differences[index]),
        )

    if len(differences) != len(source):
        sentences = 0
    best, worst = (np.argsort(sign * advances, kind="stable")[:sentences] for sign in (-1, 1))
    return ComparisonReport(
        tuple(outputs),
        comparisons,
        metric.sentence_label,
        metric.unit,
        metric.main.higher_is_better,
        metric.main.largest,
        differences.tolist(),
        [shown(index) for index in best if advances[index] > 0],
        [shown(index) for index in worst if advances[index] < 0],
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command ``compare``."""
    systems.add_arguments(parser)
    parser.add_argument(
        "--sentences", type=int, default=SENTENCES, metavar="N", help=f"shown for either side (default: {SENTENCES})"
    )


def run(arguments: argparse.Namespace) -> Analysis:
    """The command ``compare``.

    Raises:
        InputError: files do not fit together, there is one system, or options do not.
    """
    if arguments.sentences < 0:
        raise InputError(f"--sentences {arguments.sentences}: give how many to show for either side, 0 or more")
    comparable = systems.load(arguments)
    if len(comparable.outputs) < 2:
        raise InputError("--system: 1 given, but two or more are compared; give NAME=FILE of each, the baselines first")
    report = compare(
        comparable.outputs,
        comparable.source,
        comparable.references,
        comparable.metric,
        comparable.further,
        sentences=arguments.sentences,
        seed=arguments.seed,
    )
    return Analysis(asdict(report), [Panel(report)], "\n".join([*comparable.remarks, _text(report)]))


def _text(report: ComparisonReport) -> str:
    """The report as it is printed."""
    *baselines, last = report.systems
    rows = []
    for name, comparison in report.comparisons.items():
        row: dict[str, str | float] = {"metric": name}
        # Of several baselines the metric's name says which.
        for system, estimate in ((report.others, comparison.baseline), (last, comparison.system)):
            row |= {system: estimate.score, f"{system}, 95 %": f"{estimate.mean:.2f} ± {estimate.half_width:.2f}"}
        rows.append({**row, "difference": f"{comparison.difference:+.2f}", "p": f"{comparison.p_value:.4f}"})
    fewer, equal, more = report.counts
    blocks = [
        table(rows),
        "\n".join(dict.fromkeys(comparison.signature for comparison in report.comparisons.values())),
        f"{report.sentence_metric} of {len(report.differences):,} {report.unit}: {last} is better in {more:,}, "
        + (
            f"{report.others} in {fewer:,}, both are equal in {equal:,}"
            if len(baselines) == 1
            else f"all others in {fewer:,}, neither in {equal:,}"
        ),
    ]
    for name, sentences in ((last, report.better), (report.others, report.worse)):
        if sentences:
            verb = "is" if name in report.systems else "are"
            blocks.append(f"== Where {name} {verb} furthest ahead ==")
        blocks += map(_block, sentences)
    return "\n\n".join(blocks)


def _block(sentence: SentenceComparison) -> str:
    """One sentence: source, references and both outputs with their scores, a line each."""
    scores = {system: f"{system}, {score:.1f}" for system, score in sentence.scores.items()}
    lines = [(f"line {sentence.number:,}", sentence.source), *(("reference", text) for text in sentence.references)]
    lines += [(scores[system], text) for system, text in sentence.outputs.items()]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:>{width}}  {text}".rstrip() for label, text in lines)
