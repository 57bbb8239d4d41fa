"""Two systems on one test set: by how much one is better, whether by chance, and where (DPN-S2S, Table 6).

The paper's table shows one sentence, chosen by its authors. Here the sentences are those whose scores differ most, for
either side.
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
    """What both systems made of one sentence.

    Attributes:
        number: its line, from 1 on.
        source: what was to be translated or summarised.
        references: what it should become.
        outputs: of each system, by its name.
        scores: of the sentence by itself: its BLEU, its ROUGE-L ….
        difference: the second system's score less the first's.
    """

    number: int
    source: str
    references: list[str]
    outputs: dict[str, str]
    scores: dict[str, float]
    difference: float


@dataclass(frozen=True)
class ComparisonReport:
    """Two systems on one test set of N sentences.

    Attributes:
        systems: the names of the first, the baseline, and of the second.
        comparisons: of the whole test set; by the metric's name: BLEU, or ROUGE-1, -2 and -L.
        sentence_metric: what the sentences are compared by.
        unit: ``sentences``, or what the metric is made of in their place: then there are N of them.
        higher_is_better: whether the better sentence has the higher score.
        largest: the largest score that a sentence can have; None where there is no limit.
        differences: (N,), the second system's score of each sentence less the first's.
        better: the sentences where the second system is furthest ahead, the furthest first.
        worse: those where the first is.
            Of a metric that is not made of sentences, both are empty.
    """

    systems: tuple[str, str]
    comparisons: dict[str, Comparison]
    sentence_metric: str
    unit: str
    higher_is_better: bool
    largest: float | None
    differences: list[float]
    better: list[SentenceComparison]
    worse: list[SentenceComparison]

    @property
    def counts(self) -> tuple[int, int, int]:
        """In how many sentences the first system is better, both are equal, the second is better."""
        rising, falling = (sum(sign * difference > 0 for difference in self.differences) for sign in (1, -1))
        equal = len(self.differences) - rising - falling
        return (falling, equal, rising) if self.higher_is_better else (rising, equal, falling)


def compare(
    outputs: Mapping[str, Outputs],
    source: Sequence[str],
    references: References,
    metric: Metric,
    *,
    sentences: int = SENTENCES,
    seed: int = SEED,
) -> ComparisonReport:
    """Compares two systems, as a whole and sentence by sentence.

    Args:
        outputs: of each of the two, by their names; the first is the baseline.
        source: N sentences.
        references: of these.
        metric: what they are compared by.
        sentences: how many are shown for either side, at most.
        seed: of the bootstrap.

    Raises:
        ValueError: not two systems, no sentences, or lists of different length.
    """
    if len(outputs) != 2 or any(len(source) != len(output.text) for output in outputs.values()):
        raise ValueError("two systems and a source of their length are needed")
    (first, baseline), (second, system) = outputs.items()
    compared = metric.compare(baseline, system, references, seed=seed)
    names = [column.name for column in metric.columns]
    # A perfect sentence has 100 only up to the last bits, which must make no system the better one.
    scores = np.round([metric.sentence_scores(output, references) for output in (baseline, system)], 9)
    differences = scores[1] - scores[0]
    advances = np.array([metric.main.advance(difference) for difference in differences])

    def shown(index: int) -> SentenceComparison:
        return SentenceComparison(
            int(index) + 1,
            source[index],
            [lines[index] for lines in references.text],
            {name: output.text[index] for name, output in outputs.items()},
            {first: float(scores[0, index]), second: float(scores[1, index])},
            float(differences[index]),
        )

    if len(differences) != len(source):
        sentences = 0
    best, worst = (np.argsort(sign * advances, kind="stable")[:sentences] for sign in (-1, 1))
    return ComparisonReport(
        (first, second),
        {c.name if names.count(c.name) == 1 else c.label: compared[c.key] for c in metric.columns},
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
        InputError: files do not fit together, there are not two systems, or options do not.
    """
    if arguments.sentences < 0:
        raise InputError(f"--sentences {arguments.sentences}: give how many to show for either side, 0 or more")
    comparable = systems.load(arguments)
    if len(comparable.outputs) != 2:
        raise InputError(f"--system: {len(comparable.outputs)} given, but two are compared; give NAME=FILE of each")
    report = compare(
        comparable.outputs,
        comparable.source,
        comparable.references,
        comparable.metric,
        sentences=arguments.sentences,
        seed=arguments.seed,
    )
    return Analysis(asdict(report), [Panel(report)], "\n".join([*comparable.remarks, _text(report)]))


def _text(report: ComparisonReport) -> str:
    """The report as it is printed."""
    first, second = report.systems
    rows = []
    for name, comparison in report.comparisons.items():
        row: dict[str, str | float] = {"metric": name}
        for system, estimate in ((first, comparison.baseline), (second, comparison.system)):
            row |= {system: estimate.score, f"{system}, 95 %": f"{estimate.mean:.2f} ± {estimate.half_width:.2f}"}
        rows.append({**row, "difference": f"{comparison.difference:+.2f}", "p": f"{comparison.p_value:.4f}"})
    fewer, equal, more = report.counts
    blocks = [
        table(rows),
        "\n".join(dict.fromkeys(comparison.signature for comparison in report.comparisons.values())),
        f"{report.sentence_metric} of {len(report.differences):,} {report.unit}: {second} is better in {more:,}, "
        f"{first} in {fewer:,}, both are equal in {equal:,}",
    ]
    for name, sentences in ((second, report.better), (first, report.worse)):
        if sentences:
            blocks.append(f"== Where {name} is furthest ahead ==")
        blocks += map(_block, sentences)
    return "\n\n".join(blocks)


def _block(sentence: SentenceComparison) -> str:
    """One sentence: source, references and both outputs with their scores, a line each."""
    scores = {system: f"{system}, {score:.1f}" for system, score in sentence.scores.items()}
    lines = [(f"line {sentence.number:,}", sentence.source), *(("reference", text) for text in sentence.references)]
    lines += [(scores[system], text) for system, text in sentence.outputs.items()]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:>{width}}  {text}".rstrip() for label, text in lines)
