"""Learning curves of one or several trainings, from the statistics that ``fairseq-plugins train`` keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from ..experiments.training_statistics import by_split, losses_of, read_statistics
from .style import INK, PALETTE, style

Points = list[tuple[float, float]]
MOST_BITS = 64.0
"""Of a loss whose perplexity is drawn: that of a training that diverged would be no number any more."""


@dataclass(frozen=True)
class Measure:
    """What losses are drawn as.

    Attributes:
        label: of the axis
        is_perplexity: 2 to the power of the loss; else the loss in bits
    """

    label: str
    is_perplexity: bool = False

    def of(self, losses: Points) -> Points:
        """Losses in bits as they are drawn."""
        if not self.is_perplexity:
            return losses
        return [(updates, 2.0 ** min(loss, MOST_BITS)) for updates, loss in losses]


LOSS = Measure("loss (bits)")
MEASURES = {"words": Measure("perplexity", is_perplexity=True), "characters": Measure("bits per character")}
"""What a token of a running text is → what losses of language models are drawn as."""


@dataclass(frozen=True)
class LearningCurves:
    """What one training reported, as points (updates, value).

    Attributes:
        training: loss on the training set in bits, of the updates since the point before
        validation: loss on the validation set in bits, at the end of each epoch
        learning_rate: the learning rate
    """

    training: Points
    validation: Points
    learning_rate: Points

    @classmethod
    def of(cls, statistics: Iterable[Mapping[str, Any]]) -> LearningCurves:
        """The curves of fairseq's progress lines, in the order in which they were written.

        Losses are ``nll_loss`` where the criterion has it: ``loss`` would count the smoothing of labels, by which
        criterions differ. Where a training went on from a checkpoint, what it had done after it is left out.
        """
        splits = by_split(statistics)
        # A short training ends before the first --log-interval, but never before the end of its first epoch.
        training = max(splits.get("train_inner", []), splits.get("train", []), key=len)
        return cls(losses_of(training), losses_of(splits.get("valid", [])), _points(training, "lr"))

    @classmethod
    def load(cls, path: Path) -> LearningCurves:
        """The curves of a ``train.jsonl``.

        Raises:
            InputError: the file is missing, or a line of it is not what ``fairseq-plugins train`` writes.
        """
        return cls.of(read_statistics(path))


def _points(records: Iterable[Mapping[str, Any]], key: str) -> Points:
    return [(record["num_updates"], record[key]) for record in records if key in record]


def draw(curves: Mapping[str, LearningCurves], measure: Measure = LOSS) -> Figure:
    """Losses by updates, and below them the learning rate.

    Args:
        curves: those of each training, by the name that the legend shows
        measure: what the losses are drawn as

    Raises:
        ValueError: there are none.
    """
    if not curves:
        raise ValueError("no learning curves to draw")
    with style():
        return _drawn(curves, measure)


def _drawn(curves: Mapping[str, LearningCurves], measure: Measure) -> Figure:
    figure = Figure(figsize=(6.8, 4.6), layout="constrained")
    losses, rates = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    for number, of_training in enumerate(curves.values()):
        colour, line = _look(number)
        # A line needs two points.
        dot = "." if len(of_training.training) == 1 else None
        training, validation = (_columns(measure.of(of)) for of in (of_training.training, of_training.validation))
        losses.plot(*training, color=colour, linewidth=1, alpha=0.75, marker=dot, linestyle=line)
        losses.plot(*validation, color=colour, linewidth=1.8, marker="o", markersize=3.5, linestyle=line)
        rates.plot(*_columns(of_training.learning_rate), color=colour, linewidth=1.2, marker=dot, linestyle=line)
    losses.set_ylabel(measure.label)
    drawn = [value for line in losses.lines for value in line.get_ydata()]
    if measure.is_perplexity and drawn and max(drawn) > 10 * min(drawn):
        # The first updates' thousands would press what comes later onto the axis.
        losses.set_yscale("log")
        losses.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        losses.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        losses.yaxis.set_minor_formatter(NullFormatter())
    rates.set_ylabel("learning rate")
    rates.set_xlabel("updates")
    rates.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    rates.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    highest = [rate for rate in (_highest(of_training.learning_rate) for of_training in curves.values()) if rate > 0]
    # Adam's 0.001 would lie on the axis beside the 0.25 of DPN-S2S.
    if highest and max(highest) > 10 * min(highest):
        rates.set_yscale("log")
    else:
        rates.set_ylim(bottom=0)
        rates.yaxis.set_major_locator(MaxNLocator(nbins=3))
        rates.ticklabel_format(axis="y", scilimits=(-2, 4))
    kinds = [
        Line2D([], [], color=INK, linewidth=1, alpha=0.75, label="training"),
        Line2D([], [], color=INK, linewidth=1.8, marker="o", markersize=3.5, label="validation"),
    ]
    systems = [
        Line2D([], [], color=colour, linewidth=3, linestyle=line, label=name)
        for name, (colour, line) in zip(curves, map(_look, range(len(curves))), strict=True)
    ]
    losses.legend(handles=kinds + (systems if len(systems) > 1 else []))
    return figure


def _look(number: int) -> tuple[str, Literal["-", "--"]]:
    """Colour and line style of a training; with more trainings than colours the next ones are dashed."""
    return PALETTE[number % len(PALETTE)], "-" if number < len(PALETTE) else "--"


def _columns(points: Points) -> tuple[list[float], list[float]]:
    return [updates for updates, _ in points], [value for _, value in points]


def _highest(points: Points) -> float:
    return max((value for _, value in points), default=0.0)
