"""BLEU by the length of the source sentence (MC-RNN, Figure 4).

The paper's figure has one corpus BLEU for each range of lengths. Here each also has a 95 % interval, and the difference
to the first system has one of its own: the samples of the sentences are the same for all systems, so that it is
narrower than theirs. Long sentences are few, and their scores are the least certain.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..errors import InputError
from ..scoring.bleu import bleu, score_of_statistics, sentence_statistics
from . import figures, systems
from .significance import SAMPLES, SEED
from .tables import table

BOUNDS = (10, 20, 30, 40, 50, 60)


@dataclass(frozen=True)
class Interval:
    """A BLEU score, or a difference of two, in percent, with its 95 % confidence interval.

    Of a single sentence there is no interval: ``low`` and ``high`` are None.
    """

    score: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Bucket:
    """The sentences of one range of lengths.

    Attributes:
        shortest: length of the source, in tokens.
        longest: the same; None where there is no limit.
        sentences: how many there are.
        scores: corpus BLEU of each system, by its name.
        differences: what each other system has more than the first.
    """

    shortest: int
    longest: int | None
    sentences: int
    scores: dict[str, Interval]
    differences: dict[str, Interval]

    @property
    def label(self) -> str:
        """``11–20``, ``61 and more``."""
        return f"{self.shortest} and more" if self.longest is None else f"{self.shortest}–{self.longest}"


@dataclass(frozen=True)
class LengthReport:
    """BLEU by length.

    Attributes:
        systems: their names; differences are to the first.
        buckets: from short to long, without those that have no sentence.
        signature: how BLEU was computed, sacreBLEU's, with the bootstrap's samples and seed.
    """

    systems: list[str]
    buckets: list[Bucket]
    signature: str


def bleu_by_length(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    source_lengths: Sequence[int],
    bounds: Sequence[int] = BOUNDS,
    *,
    tokenize: str = "none",
    lowercase: bool = False,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> LengthReport:
    """Corpus BLEU of each range of source lengths.

    Args:
        systems: N sentences of each.
        references: one or several for each sentence: lists of N.
        source_lengths: N lengths in tokens.
        bounds: the longest length of each range but the last, which has none.
        tokenize: ``none`` for tokenised BLEU, ``13a`` for sacreBLEU.
        lowercase: both sides.
        samples: of the sentences of a range, for the intervals.
        seed: of the sampling.

    Raises:
        ValueError: no systems or sentences, lists of different length, a length below 1, or bounds that do not rise
            from 1 on.
    """
    counts = [len(source_lengths), *map(len, systems.values()), *map(len, references)]
    if not systems or not references or len(set(counts)) != 1 or not counts[0]:
        raise ValueError(f"lengths, systems and references need one entry for each sentence, but have {counts}")
    if min(source_lengths) < 1:
        raise ValueError("a source sentence has no token")
    if not bounds or list(bounds) != sorted(set(bounds)) or bounds[0] < 1:
        raise ValueError(f"bounds must rise, from 1 or more, but are {list(bounds)}")
    metric = bleu(tokenize, lowercase)
    statistics = [sentence_statistics(metric, outputs, references) for outputs in systems.values()]
    place = np.searchsorted(bounds, source_lengths)
    generator = np.random.default_rng(seed)
    buckets = []
    for index, (shortest, longest) in enumerate(zip([1, *(b + 1 for b in bounds)], [*bounds, None], strict=True)):
        members = np.flatnonzero(place == index)
        if not len(members):
            continue
        own = np.stack([rows[members] for rows in statistics])
        observed = np.array([score_of_statistics(metric, summed) for summed in own.sum(axis=1)])
        sampled = np.empty((samples, len(systems)))
        for row in sampled:
            # How often each sentence is drawn: as good as the sentences themselves, and quicker to sum.
            drawn = np.bincount(generator.integers(len(members), size=len(members)), minlength=len(members))
            row[:] = [score_of_statistics(metric, summed) for summed in drawn @ own]
        known = len(members) > 1
        scores = _intervals(systems, observed, sampled, known)
        differences = _intervals(systems, observed - observed[0], sampled - sampled[:, :1], known)
        del differences[next(iter(systems))]
        buckets.append(Bucket(shortest, longest, len(members), scores, differences))
    signature = metric.get_signature()
    signature.update("bs", samples)
    signature.update("seed", seed)
    return LengthReport(list(systems), buckets, str(signature))


def _intervals(names: Iterable[str], observed: np.ndarray, sampled: np.ndarray, known: bool) -> dict[str, Interval]:
    """Each system's score, (S,), with the middle 95 % of its samples, (samples, S), where that is known."""
    low, high = np.percentile(sampled, [2.5, 97.5], axis=0).tolist()
    return {
        name: Interval(score, low[index] if known else None, high[index] if known else None)
        for index, (name, score) in enumerate(zip(names, observed.tolist(), strict=True))
    }


def draw(report: LengthReport) -> Figure:
    """BLEU of every system by length; below it, where there are several, the differences to the first."""
    several = len(report.systems) > 1
    colors = figures.system_colors(report.systems)
    with figures.style():
        width = max(4.8, 1.2 + len(report.buckets) * max(0.95, 0.5 + 0.14 * len(report.systems)))
        figure = Figure(figsize=(width, 5.2 if several else 3.4), layout="constrained")
        plots = figure.subplots(1 + several, 1, sharex=True, squeeze=False, height_ratios=[1.7, 1][: 1 + several])[:, 0]
        for plot in plots:
            plot.grid(visible=False, axis="x")
        for index, name in enumerate(report.systems):
            # Side by side, so that error bars do not hide each other.
            shift = 0.12 * (index - (len(report.systems) - 1) / 2)
            places = [place + min(1, 4 / len(report.systems)) * shift for place in range(len(report.buckets))]
            marker = figures.MARKERS[index % len(figures.MARKERS)]
            look = {"color": colors[name], "marker": marker, "markersize": 5, "capsize": 2.5, "elinewidth": 1}
            for plot, values in zip(plots, ("scores", "differences"), strict=False):
                intervals = [getattr(bucket, values).get(name) for bucket in report.buckets]
                if None in intervals:
                    continue
                middle = np.array([interval.score for interval in intervals])
                ends = np.array([[i.low, i.high] for i in intervals], dtype=np.float64)
                # Where a bucket has few sentences a score can lie outside of its own interval.
                reach = np.maximum(0, [middle - ends[:, 0], ends[:, 1] - middle])
                plot.errorbar(places, middle, yerr=reach, linewidth=1.4, label=name, **look)
        plots[0].set_ylabel("BLEU, 95 % intervals")
        plots[0].yaxis.set_major_locator(MaxNLocator(7))
        plots[0].set_ylim(bottom=max(0, plots[0].get_ylim()[0]))
        figures.add_legend(figure, plots[0].get_legend_handles_labels()[0])
        if several:
            plots[1].axhline(0, color=colors[report.systems[0]], linewidth=1)
            first = report.systems[0]
            plots[1].set_ylabel(f"difference to\n{first if len(first) <= 20 else 'the first'}")
            plots[1].yaxis.set_major_locator(MaxNLocator(5))
        figure.align_ylabels(list(plots))
        labels = [f"{bucket.label}\nn = {bucket.sentences:,}" for bucket in report.buckets]
        plots[-1].set_xticks(range(len(labels)), labels)
        plots[-1].set_xlim(-0.5, len(labels) - 0.5)
        plots[-1].set_xlabel("tokens of the source sentence, and number of sentences")
    return figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command ``length``."""
    systems.add_arguments(parser)
    figures.add_arguments(parser)
    parser.add_argument(
        "--bounds",
        type=int,
        nargs="+",
        default=BOUNDS,
        metavar="LENGTH",
        help=f"the longest sentence of each range but the last (default: {' '.join(map(str, BOUNDS))})",
    )


def run(arguments: argparse.Namespace) -> None:
    """The command ``length``: writes the figure and its numbers, and prints these.

    Raises:
        InputError: files do not fit together, or bounds do not rise.
    """
    figures.check_prefix(arguments.output)
    bounds = arguments.bounds
    if list(bounds) != sorted(set(bounds)) or bounds[0] < 1:
        raise InputError(f"--bounds {' '.join(map(str, bounds))}: give numbers that rise, from 1 or more")
    given = systems.load(arguments)
    lengths = [len(line.split()) for line in given.source]
    if 0 in lengths:
        raise InputError(
            f"{arguments.source}, line {lengths.index(0) + 1}: empty, so it belongs to no length; "
            f"leave this line out of all files"
        )
    report = bleu_by_length(
        given.outputs,
        given.references,
        lengths,
        bounds,
        tokenize=arguments.tokenize or "none",
        lowercase=arguments.lowercase,
        seed=arguments.seed,
    )
    figures.save_with_numbers(draw(report), asdict(report), arguments.output, arguments.format)
    print(table([_row(bucket, report.systems[0]) for bucket in report.buckets]))
    print(f"BLEU with 95 % intervals: {report.signature}")


def _row(bucket: Bucket, first: str) -> dict[str, str | int]:
    """A bucket as a row of the table that is printed."""
    row: dict[str, str | int] = {"tokens": bucket.label, "sentences": bucket.sentences}
    row |= {name: _shown(interval, ".2f") for name, interval in bucket.scores.items()}
    return row | {f"{name} - {first}": _shown(interval, "+.2f") for name, interval in bucket.differences.items()}


def _shown(interval: Interval, form: str) -> str:
    """``27.65 (22.96 to 32.30)``."""
    if interval.low is None or interval.high is None:
        return f"{interval.score:{form}}"
    return f"{interval.score:{form}} ({interval.low:{form}} to {interval.high:{form}})"
