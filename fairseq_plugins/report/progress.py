"""How sequence tasks are learned: copy memory's cross-entropy as in DilatedRNN's Figure 3, or validation accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ..experiments.run import Run
from ..experiments.training_statistics import by_split, read_statistics
from .curves import Points
from .page import Drawing
from .style import INK, PALETTE, inline_svg, style


@dataclass(frozen=True)
class Progress:
    """What is drawn of a metric.

    Attributes:
        split: of ``train.jsonl``: ``train_inner`` or ``valid``
        key: of its statistics
        factor: from what is logged to what is drawn
        label: of the axis
        chance: a line for guessing; None for none
        caption: under the figure
    """

    split: str
    key: str
    factor: float
    label: str
    chance: float | None
    caption: str


PROGRESS = {
    "copy_memory": Progress(
        "train_inner",
        "loss",
        math.log(2),
        "cross-entropy (nats)",
        math.log(8),
        "Cross-entropy of the symbols to copy, on training sequences that are always new. The dotted line is ln 8, "
        "that of guessing.",
    ),
    "ranking": Progress("valid", "map", 1.0, "MAP", None, "MAP on the validation set, by updates."),
    "accuracy": Progress("valid", "accuracy", 1.0, "accuracy (%)", None, "Accuracy on the validation set, by updates."),
}
"""The metric → what is drawn of it."""


def figures(runs: Mapping[str, Run], metric: str) -> list[Drawing]:
    """The curves of trainings, in a panel for each ending of their names after the last comma.

    Args:
        runs: by their systems' names (``dilated tanh, T = 500``)
        metric: the name of what they are scored by; of others there is no figure
    """
    progress = PROGRESS.get(metric)
    if progress is None:
        return []
    panels: dict[str, dict[str, Points]] = {}
    for name, run in runs.items():
        points = read_points(run.statistics, progress)
        system, _, panel = name.rpartition(", ")
        if points:
            panels.setdefault(panel if system else "", {})[system or name] = points
    if not panels:
        return []
    svg = inline_svg(draw_progress(panels, progress), "progress")
    return [Drawing("Convergence", progress.caption, svg)]


def read_points(path: Path, progress: Progress) -> Points:
    """(updates, value) of a ``train.jsonl``; none where there is no such file."""
    if not path.is_file():
        return []
    points = by_split(read_statistics(path)).get(progress.split, [])
    return [(one["num_updates"], progress.factor * one[progress.key]) for one in points if progress.key in one]


def draw_progress(panels: Mapping[str, Mapping[str, Points]], progress: Progress) -> Figure:
    """A panel for each group of trainings; a system has its colour and line in all of them."""
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    looks = {name: (PALETTE[i % len(PALETTE)], ("-", "--", ":")[i // len(PALETTE) % 3]) for i, name in enumerate(names)}
    with style():
        figure = Figure(figsize=(4.6 * len(panels) + 2.0, 3.8), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (title, systems) in zip(axes, panels.items(), strict=True):
            for name, points in systems.items():
                colour, line = looks[name]
                updates, values = zip(*points, strict=True)
                marker = "." if len(points) == 1 else None
                axis.plot(updates, values, color=colour, linestyle=line, linewidth=1.4, marker=marker, label=name)
            if progress.chance is not None:
                axis.axhline(progress.chance, color=INK, linewidth=0.8, linestyle=":")
            axis.set_title(title, fontsize=10)
            axis.set_xlabel("updates")
        axes[0].set_ylabel(progress.label)
        handles = {handle.get_label(): handle for axis in axes for handle in axis.get_lines()}
        figure.legend(handles=[handles[name] for name in names], loc="outside right center")
    return figure
