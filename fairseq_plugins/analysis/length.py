"""Scores by the length of the source sentence (MC-RNN, Figure 4).

The paper's figure has one corpus BLEU for each range of lengths. Here each also has a 95 % interval, and the difference
to the first system has one of its own: the samples of the sentences are the same for all systems, so that it is
narrower than theirs. Long sentences are few, and their scores are the least certain.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ..errors import InputError
from ..scoring.bleu import has_hardly_spaces
from ..scoring.metrics import Metric, Outputs, References
from ..scoring.rouge_tokens import unicode_tokens
from ..scoring.significance import SAMPLES, SEED, Interval
from ..terminal import table
from . import systems
from .result import Analysis, Panel

BOUNDS = (10, 20, 30, 40, 50, 60)


@dataclass(frozen=True)
class Bucket:
    """The sentences of one range of lengths.

    Attributes:
        shortest: length of the source, in tokens.
        longest: the same; None where there is no limit.
        sentences: how many there are.
        scores: of each system, by its name.
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
    """Scores by length.

    Attributes:
        metric: what the score is called.
        systems: their names; differences are to the first.
        buckets: from short to long, without those that have no sentence.
        signature: how the score was computed, in sacreBLEU's manner, with the bootstrap's samples and seed.
    """

    metric: str
    systems: list[str]
    buckets: list[Bucket]
    signature: str


def scores_by_length(
    systems: Mapping[str, Outputs],
    references: References,
    source_lengths: Sequence[int],
    metric: Metric,
    bounds: Sequence[int] = BOUNDS,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> LengthReport:
    """The metric's main score of each range of source lengths.

    Args:
        systems: N sentences of each.
        references: of these.
        source_lengths: N lengths in tokens.
        metric: what they are scored by.
        bounds: the longest length of each range but the last, which has none.
        samples: of the sentences of a range, for the intervals.
        seed: of the sampling.

    Raises:
        ValueError: no systems or sentences, lists of different length, a length below 1, or bounds that do not rise
            from 1 on.
        InputError: the metric is not made of sentences.
    """
    outputs = [len(output.text) for output in systems.values()]
    counts = [len(source_lengths), *outputs, *map(len, references.text)]
    if not systems or not references.text or len(set(counts)) != 1 or not counts[0]:
        raise ValueError(f"lengths, systems and references need one entry for each sentence, but have {counts}")
    if min(source_lengths) < 1:
        raise ValueError("a source sentence has no token")
    if not bounds or list(bounds) != sorted(set(bounds)) or bounds[0] < 1:
        raise ValueError(f"bounds must rise, from 1 or more, but are {list(bounds)}")
    single = metric.only(metric.main.key)
    statistics = [single.statistics(output, references) for output in systems.values()]
    if any(len(rows) != counts[0] for rows in statistics):
        raise InputError(f"{metric.label} is not made of sentences, so that it has no score by their length")
    place = np.searchsorted(bounds, source_lengths)
    generator = np.random.default_rng(seed)
    buckets = []
    for index, (shortest, longest) in enumerate(zip([1, *(b + 1 for b in bounds)], [*bounds, None], strict=True)):
        members = np.flatnonzero(place == index)
        if not len(members):
            continue
        of_bucket = np.stack([rows[members] for rows in statistics])
        observed = np.concatenate([single.scores_of(summed) for summed in of_bucket.sum(axis=1)])
        sampled = np.empty((samples, len(systems)))
        for row in sampled:
            # How often each sentence is drawn: as good as the sentences themselves, and quicker to sum.
            drawn = np.bincount(generator.integers(len(members), size=len(members)), minlength=len(members))
            row[:] = np.concatenate([single.scores_of(summed) for summed in drawn @ of_bucket])
        has_interval = len(members) > 1
        scores = _intervals(systems, observed, sampled, has_interval)
        differences = _intervals(systems, observed - observed[0], sampled - sampled[:, :1], has_interval)
        del differences[next(iter(systems))]
        buckets.append(Bucket(shortest, longest, len(members), scores, differences))
    signature = metric.signature(metric.main, references, f"bs:{samples}|seed:{seed}")
    return LengthReport(metric.main.name, list(systems), buckets, signature)


def _intervals(
    names: Iterable[str], observed: np.ndarray, sampled: np.ndarray, has_interval: bool
) -> dict[str, Interval]:
    """Each system's score, (S,), with the middle 95 % of its samples, (samples, S), where that is known."""
    low, high = np.percentile(sampled, [2.5, 97.5], axis=0).tolist()
    return {
        name: Interval(score, low[index] if has_interval else None, high[index] if has_interval else None)
        for index, (name, score) in enumerate(zip(names, observed.tolist(), strict=True))
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command ``length``."""
    systems.add_arguments(parser)
    parser.add_argument(
        "--bounds",
        type=int,
        nargs="+",
        default=BOUNDS,
        metavar="LENGTH",
        help=f"the longest sentence of each range but the last (default: {' '.join(map(str, BOUNDS))})",
    )


def lengths_of(lines: Sequence[str]) -> tuple[list[int], str]:
    """The lengths of source sentences, and of what: ``tokens``, or ``characters`` of text without spaces."""
    if not has_hardly_spaces(lines):
        return [len(line.split()) for line in lines], "tokens"
    return [max(1, len(unicode_tokens(line))) if line.strip() else 0 for line in lines], "characters"


def run(arguments: argparse.Namespace) -> Analysis:
    """The command ``length``.

    Raises:
        InputError: files do not fit together, or bounds do not rise.
    """
    bounds = arguments.bounds
    if list(bounds) != sorted(set(bounds)) or bounds[0] < 1:
        raise InputError(f"--bounds {' '.join(map(str, bounds))}: give numbers that rise, from 1 or more")
    comparable = systems.load(arguments)
    if comparable.further:
        raise InputError(f"--metric {arguments.metric}: scores by length are of one metric; give one")
    lengths, unit = lengths_of(comparable.source)
    remarks = comparable.remarks
    if unit != "tokens":
        remarks = [*remarks, f"lengths are in {unit}, since the source has hardly a space"]
    if 0 in lengths:
        raise InputError(
            f"{arguments.source}, line {lengths.index(0) + 1}: empty, so it belongs to no length; "
            f"leave this line out of all files"
        )
    report = scores_by_length(
        comparable.outputs, comparable.references, lengths, comparable.metric, bounds, seed=arguments.seed
    )
    rows = table([_row(bucket, report.systems[0]) for bucket in report.buckets])
    text = "\n".join([*remarks, rows, f"{report.metric} with 95 % intervals: {report.signature}"])
    return Analysis(asdict(report), [Panel(report)], text)


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
