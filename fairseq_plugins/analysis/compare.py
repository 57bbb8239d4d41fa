"""Two systems on one test set: by how much one is better, whether by chance, and where (DPN-S2S, Table 6).

The paper's table shows one sentence, chosen by its authors. Here the sentences are those whose scores differ most, for
either side.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from ..errors import InputError
from ..scoring import rouge
from ..scoring.bleu import sentence_bleu
from . import figures, systems
from .significance import SEED, Comparison, paired_bootstrap, paired_bootstrap_bleu
from .tables import table

METRICS = ("bleu", "rouge")
SENTENCES = 10


@dataclass(frozen=True)
class Sentence:
    """What both systems made of one sentence.

    Attributes:
        number: its line, from 1 on.
        source: what was to be translated or summarised.
        references: what it should become.
        outputs: of each system, by its name.
        scores: in percent: BLEU of the sentence by itself, or its ROUGE-L.
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
        differences: (N,) in percent, the second system's score of each sentence less the first's.
        better: the sentences where the second system is furthest ahead, the furthest first.
        worse: those where the first is.
    """

    systems: tuple[str, str]
    comparisons: dict[str, Comparison]
    sentence_metric: str
    differences: list[float]
    better: list[Sentence]
    worse: list[Sentence]

    @property
    def counts(self) -> tuple[int, int, int]:
        """In how many sentences the first system is better, both are equal, the second is better."""
        return (
            sum(difference < 0 for difference in self.differences),
            sum(difference == 0 for difference in self.differences),
            sum(difference > 0 for difference in self.differences),
        )


def compare(
    outputs: Mapping[str, Sequence[str]],
    source: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metric: str = "bleu",
    sentences: int = SENTENCES,
    tokenize: str = "none",
    lowercase: bool = False,
    seed: int = SEED,
) -> ComparisonReport:
    """Compares two systems, as a whole and sentence by sentence.

    Args:
        outputs: N sentences of each of the two, by their names; the first is the baseline.
        source: N sentences.
        references: one or several for each: lists of N.
        metric: ``bleu`` or ``rouge``.
        sentences: how many are shown for either side, at most.
        tokenize: of BLEU: ``none`` for tokenised BLEU, ``13a`` for sacreBLEU.
        lowercase: BLEU of lower-cased text; ROUGE always is.
        seed: of the bootstrap.

    Raises:
        ValueError: not two systems, no sentences, lists of different length, or another metric.
    """
    if len(outputs) != 2 or metric not in METRICS or len(source) != len(next(iter(outputs.values()))):
        raise ValueError(f"two systems, one of {METRICS} and a source of their length are needed")
    (first, baseline), (second, system) = outputs.items()
    if metric == "bleu":
        options = {"tokenize": tokenize, "lowercase": lowercase}
        comparisons = {"BLEU": paired_bootstrap_bleu(baseline, system, references, **options, seed=seed)}
        scores = np.array([sentence_bleu(lines, references, **options) for lines in (baseline, system)])
        sentence_metric = "sentence BLEU"
    else:
        all_scores = [rouge.sentence_rouge(lines, references) for lines in (baseline, system)]
        comparisons = {}
        for index, name in enumerate(rouge.METRICS.values()):
            found = paired_bootstrap(*(of_system[:, index] for of_system in all_scores), seed=seed)
            comparisons[name] = replace(found, signature=rouge.signature(len(references), found.signature))
        scores = np.array([of_system[:, -1] for of_system in all_scores])
        sentence_metric = "ROUGE-L"
    # A perfect sentence has 100 only up to the last bits, which must make no system the better one.
    scores = np.round(scores, 9)
    differences = scores[1] - scores[0]
    order = np.argsort(-differences, kind="stable")

    def shown(index: int) -> Sentence:
        return Sentence(
            int(index) + 1,
            source[index],
            [lines[index] for lines in references],
            {first: baseline[index], second: system[index]},
            {first: float(scores[0, index]), second: float(scores[1, index])},
            float(differences[index]),
        )

    better = [shown(index) for index in order[:sentences] if differences[index] > 0]
    worst = np.argsort(differences, kind="stable")[:sentences]
    worse = [shown(index) for index in worst if differences[index] < 0]
    return ComparisonReport((first, second), comparisons, sentence_metric, differences.tolist(), better, worse)


def draw(report: ComparisonReport) -> Figure:
    """How many sentences differ by how much: a histogram with the first system's side and the second's."""
    first, second = report.systems
    colors = figures.system_colors(report.systems)
    differences = np.array(report.differences)
    edges = np.arange(0, 101, 5)
    with figures.style():
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        plot = figure.subplots()
        plot.grid(visible=False, axis="x")
        sides = ((first, -1, report.counts[0]), (second, 1, report.counts[2]))
        for name, sign, count in sides:
            # Equal sentences are on neither side; a bin has its far edge: 5 belongs to what lies above 0.
            sizes = np.histogram(-sign * differences[sign * differences > 0], -edges[::-1])[0][::-1]
            label = f"{name} is better in {count:,}, by {_mean(differences, sign):.1f} on average"
            plot.bar(sign * (edges[:-1] + 2.5), sizes, width=4.4, color=colors[name], label=label)
        plot.axvline(0, color=figures.INK, linewidth=0.8)
        reach = 5 * np.ceil(max(np.abs(differences).max(), 20) / 5)
        plot.set_xlim(-reach, reach)
        plot.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:+g}".replace("-", "−") if value else "0")
        )
        plot.yaxis.get_major_locator().set_params(integer=True)
        plot.set_xlabel(f"{report.sentence_metric}, {second} less {first}")
        plot.set_ylabel("number of sentences")
        handles = plot.get_legend_handles_labels()[0]
        equal = f"both are equal in {report.counts[1]:,} (not drawn)"
        figure.legend(handles=[*handles, Patch(color="none", label=equal)], loc="outside upper left")
    return figure


def _mean(differences: np.ndarray, sign: int) -> float:
    """By how much one side is ahead where it is ahead."""
    ahead = sign * differences[sign * differences > 0]
    return float(ahead.mean()) if len(ahead) else 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command ``compare``."""
    systems.add_arguments(parser)
    figures.add_arguments(parser)
    parser.add_argument("--metric", choices=METRICS, default="bleu", help="default: bleu")
    parser.add_argument(
        "--sentences", type=int, default=SENTENCES, metavar="N", help=f"shown for either side (default: {SENTENCES})"
    )


def run(arguments: argparse.Namespace) -> None:
    """The command ``compare``: writes the figure and the numbers, and prints the comparison.

    Raises:
        InputError: files do not fit together, there are not two systems, or options do not.
    """
    figures.check_prefix(arguments.output)
    if arguments.sentences < 0:
        raise InputError(f"--sentences {arguments.sentences}: give how many to show for either side, 0 or more")
    if arguments.metric == "rouge" and (arguments.tokenize or arguments.lowercase):
        raise InputError("--tokenize and --lowercase are BLEU's, ROUGE has its own words; leave them out")
    given = systems.load(arguments)
    if len(given.outputs) != 2:
        raise InputError(f"--system: {len(given.outputs)} given, but two are compared; give NAME=FILE of each")
    report = compare(
        given.outputs,
        given.source,
        given.references,
        metric=arguments.metric,
        sentences=arguments.sentences,
        tokenize=arguments.tokenize or "none",
        lowercase=arguments.lowercase,
        seed=arguments.seed,
    )
    figures.save_with_numbers(draw(report), asdict(report), arguments.output, arguments.format)
    print(_text(report))


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
        f"{report.sentence_metric} of {len(report.differences):,} sentences: {second} is better in {more:,}, "
        f"{first} in {fewer:,}, both are equal in {equal:,}",
    ]
    for name, sentences in ((second, report.better), (first, report.worse)):
        if sentences:
            blocks.append(f"== Where {name} is furthest ahead ==")
        blocks += map(_block, sentences)
    return "\n\n".join(blocks)


def _block(sentence: Sentence) -> str:
    """One sentence: source, references and both outputs with their scores, a line each."""
    scores = {system: f"{system}, {score:.1f}" for system, score in sentence.scores.items()}
    lines = [(f"line {sentence.number:,}", sentence.source), *(("reference", text) for text in sentence.references)]
    lines += [(scores[system], text) for system, text in sentence.outputs.items()]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:>{width}}  {text}".rstrip() for label, text in lines)
