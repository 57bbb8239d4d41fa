"""The figures of analyses: what each looks like. The numbers are those of :mod:`fairseq_plugins.analysis`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import AutoLocator, FuncFormatter, MaxNLocator

from ..decoding.flows import FLOWS, OUTPUT, Gate, gates_of
from .style import INK, MARKERS, PALETTE, add_legend, style, system_colors

if TYPE_CHECKING:  # importing them imports fairseq, which figures do not need
    from ..analysis.alignments import Alignment
    from ..analysis.boundaries import Boundaries
    from ..analysis.channel_attention import ChannelAttention
    from ..analysis.compare import ComparisonReport
    from ..analysis.length import LengthReport
    from ..analysis.memory import NetworkMemory
    from ..analysis.seeds import SeedsReport
    from ..analysis.speed import Speed
    from ..decoding.attention import Focus

WORD = 0.24
"""Inches of a figure for one word."""
STEP = 0.42
"""Inches of a figure for one step of a layer."""


def draw_alignment(alignment: Alignment) -> Figure:
    """One panel for each flow: source words along the x-axis, target words along the y-axis, as in Figure 2."""
    names = list(alignment.flows)
    # A row for each path of the decoder.
    columns = len({name[1] for name in names}) if set(names) <= FLOWS.keys() else min(2, len(names))
    rows = -(-len(names) // columns)
    width = 1.1 + WORD * len(alignment.source)
    height = 1.1 + WORD * len(alignment.target)
    with style():
        figure = Figure(figsize=(columns * width + 0.6, rows * height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        for axis, name in zip(axes, names, strict=False):
            image = axis.imshow(alignment.flows[name], cmap="Blues", vmin=0, vmax=1, aspect="equal")
            axis.set_xticks(range(len(alignment.source)), alignment.source, rotation=90)
            axis.set_yticks(range(len(alignment.target)), alignment.target)
            axis.tick_params(length=0, labelsize=8)
            axis.grid(visible=False)
            axis.spines[:].set_visible(True)
            axis.set_title(FLOWS.get(name, ""), fontsize=10)
        for axis in axes[len(names) :]:
            axis.set_visible(False)
        figure.colorbar(image, ax=list(axes), shrink=0.6, label="attention")
    return figure


def draw_channel_attention(sentence: ChannelAttention) -> Figure:
    """A panel for each layer and direction: steps along the x-axis, channels along the y-axis.

    The darker a cell, the larger its weight, as in Figure 3; the number in it is the in-degree.
    """
    steps, channels = len(sentence.pieces), len(sentence.layers[0].attention[0])
    height = 0.55 + STEP * channels
    with style():
        figure = Figure(figsize=(1.6 + STEP * steps, height * len(sentence.layers) + 1.0), layout="constrained")
        axes = figure.subplots(len(sentence.layers), 1, sharex=True, squeeze=False).flatten()
        largest = max(weight for layer in sentence.layers for row in layer.attention for weight in row)
        for axis, layer in zip(axes, sentence.layers, strict=True):
            by_channel = list(zip(*layer.attention, strict=True))
            image = axis.imshow(by_channel, cmap="Blues", vmin=0, vmax=largest, aspect="equal")
            for position, row in enumerate(layer.in_degree):
                for channel, m in enumerate(row):
                    is_dark = layer.attention[position][channel] > 0.6 * largest
                    axis.text(
                        position,
                        channel,
                        m,
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="white" if is_dark else "#404040",
                    )
            axis.set_yticks(range(channels), [f"channel {k}" for k in range(1, channels + 1)])
            axis.set_title(f"layer {layer.layer}, {layer.direction}", fontsize=10, loc="left")
            axis.tick_params(length=0, labelsize=8)
            axis.grid(visible=False)
            axis.spines[:].set_visible(True)
            for _, start, _ in sentence.words[1:]:
                axis.axvline(start - 0.5, color="0.6", linewidth=0.6)
        centers = [(start + stop - 1) / 2 for _, start, stop in sentence.words]
        axes[-1].set_xticks(centers, [text for text, _, _ in sentence.words], rotation=90)
        figure.colorbar(image, ax=list(axes), shrink=0.6, label="attention; in the cells: tokens connected")
    return figure


def draw_boundaries(sentence: Boundaries) -> Figure:
    """A panel for each direction: steps along the x-axis, levels along the y-axis; a dark cell is a boundary."""
    directions = sentence.directions
    levels = len(next(iter(directions.values()))[0])
    with style():
        size = (1.6 + STEP * len(sentence.pieces), (0.6 + STEP * levels) * len(directions) + 1.0)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(directions), 1, sharex=True, squeeze=False).flatten()
        for axis, (direction, rows) in zip(axes, directions.items(), strict=True):
            by_level = list(zip(*rows, strict=True))
            axis.imshow(by_level, cmap="Blues", vmin=0, vmax=1, aspect="equal", origin="lower")
            axis.set_yticks(range(levels), [f"level {level}" for level in range(1, levels + 1)])
            axis.set_title(direction, fontsize=10, loc="left")
            axis.tick_params(length=0, labelsize=8)
            axis.grid(visible=False)
            axis.spines[:].set_visible(True)
        axes[-1].set_xticks(range(len(sentence.pieces)), sentence.pieces, rotation=90)
    return figure


def draw_memories(networks: Sequence[NetworkMemory]) -> Figure:
    """The shortest path by the span that it bridges, a line for each network, which ends where there are no paths."""
    with style():
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        plot = figure.subplots()
        for network in networks:
            lengths = [np.nan if length is None else length for length in network.lengths]
            plot.plot(range(len(lengths)), lengths, label=network.name, linewidth=1.2)
        plot.set_xlabel("steps between input and output")
        plot.set_ylabel("edges of the shortest path")
        plot.legend(fontsize=8)
    return figure


def draw_comparison(report: ComparisonReport) -> Figure:
    """How many sentences differ by how much: a histogram with the other systems' side and the last one's."""
    first, second = report.others, report.systems[-1]
    colors = system_colors([first, second])
    differences = np.array(report.differences)
    reach = float(np.abs(differences).max())
    bin_width = 5.0 if report.largest == 100 else MaxNLocator(20).tick_values(0, reach or 1)[1]
    edges = bin_width * np.arange(0, 1 + np.ceil(max(report.largest or 0, reach, bin_width) / bin_width))
    # On which side of zero the second system is the better one.
    better = 1 if report.higher_is_better else -1
    with style():
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        plot = figure.subplots()
        plot.grid(visible=False, axis="x")
        sides = ((first, -better, report.counts[0]), (second, better, report.counts[2]))
        for name, sign, count in sides:
            # Equal sentences are on neither side; a bin has its far edge: 5 belongs to what lies above 0.
            sizes = np.histogram(-sign * differences[sign * differences > 0], -edges[::-1])[0][::-1]
            verb = "is" if name in report.systems else "are"
            label = f"{name} {verb} better in {count:,}, by {_mean(differences, sign):.1f} on average"
            centers = sign * (edges[:-1] + bin_width / 2)
            plot.bar(centers, sizes, width=0.88 * bin_width, color=colors[name], label=label)
        plot.axvline(0, color=INK, linewidth=0.8)
        shown = bin_width * np.ceil(max(reach, 4 * bin_width) / bin_width)
        plot.set_xlim(-shown, shown)
        plot.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:+g}".replace("-", "−") if value else "0")
        )
        whole_numbers = AutoLocator()
        whole_numbers.set_params(integer=True)
        plot.yaxis.set_major_locator(whole_numbers)
        plot.set_xlabel(f"{report.sentence_metric}, {second} less {first}")
        plot.set_ylabel("number of sentences")
        handles = plot.get_legend_handles_labels()[0]
        equal = f"{'both are equal' if len(report.systems) == 2 else 'neither'} in {report.counts[1]:,} (not drawn)"
        figure.legend(handles=[*handles, Patch(color="none", label=equal)], loc="outside upper left")
    return figure


def _mean(differences: np.ndarray, sign: int) -> float:
    """By how much one side is ahead where it is ahead."""
    ahead = sign * differences[sign * differences > 0]
    return float(ahead.mean()) if len(ahead) else 0.0


def draw_focus(focus: Focus) -> Figure:
    """The entropy of each flow; below it, where there are gates, the shares of what each fuses."""
    gates = gates_of(list(focus.entropy), focus.gates)
    heights = [0.9 + 0.45 * len(focus.entropy), *([1.2 + 0.3 * len(gates)] if gates else [])]
    with style():
        figure = Figure(figsize=(5, sum(heights)), layout="constrained")
        axis, *below = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        names = [FLOWS.get(name, name) for name in focus.entropy]
        bars = axis.barh(names, list(focus.entropy.values()), height=0.6, color=PALETTE[0])
        axis.bar_label(bars, fmt="%.3f", padding=4)
        axis.margins(x=0.15)
        axis.invert_yaxis()
        axis.set_xlabel("entropy of the alignments (nats)")
        axis.grid(visible=False, axis="y")
        for axis in below:
            _draw_gates(axis, gates)
    return figure


def _draw_gates(axis: Axes, gates: Sequence[Gate]) -> None:
    """A bar for each gate, cut into the shares of what it fuses."""
    labels = [OUTPUT if gate.name == OUTPUT else f"{gate.name.upper()}, layer {gate.layer}" for gate in gates]
    paths = list(dict.fromkeys(path for gate in gates for path in gate.shares))
    start = np.zeros(len(gates))
    for path, color in zip(paths, PALETTE, strict=False):
        shares = np.array([gate.shares.get(path, 0.0) for gate in gates])
        axis.barh(labels, shares, left=start, height=0.6, color=color, label=path.upper())
        start += shares
    axis.set_xlim(0, 1)
    axis.invert_yaxis()
    axis.set_xlabel("shares in the gates")
    axis.grid(visible=False, axis="y")
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(paths))


def draw_lengths(report: LengthReport) -> Figure:
    """The score of every system by length; below it, where there are several, the differences to the first."""
    several = len(report.systems) > 1
    colors = system_colors(report.systems)
    with style():
        width = max(4.8, 1.2 + len(report.buckets) * max(0.95, 0.5 + 0.14 * len(report.systems)))
        figure = Figure(figsize=(width, 5.2 if several else 3.4), layout="constrained")
        plots = figure.subplots(1 + several, 1, sharex=True, squeeze=False, height_ratios=[1.7, 1][: 1 + several])[:, 0]
        for plot in plots:
            plot.grid(visible=False, axis="x")
        for index, name in enumerate(report.systems):
            # Side by side, so that error bars do not hide each other.
            shift = 0.12 * (index - (len(report.systems) - 1) / 2)
            places = [place + min(1, 4 / len(report.systems)) * shift for place in range(len(report.buckets))]
            marker = MARKERS[index % len(MARKERS)]
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
        plots[0].set_ylabel(f"{report.metric}, 95 % intervals")
        plots[0].yaxis.set_major_locator(MaxNLocator(7))
        plots[0].set_ylim(bottom=max(0, plots[0].get_ylim()[0]))
        add_legend(figure, plots[0].get_legend_handles_labels()[0])
        if several:
            plots[1].axhline(0, color=colors[report.systems[0]], linewidth=1)
            first = report.systems[0]
            plots[1].set_ylabel(f"difference to\n{first if len(first) <= 20 else 'the first'}")
            plots[1].yaxis.set_major_locator(MaxNLocator(5))
        figure.align_ylabels(list(plots))
        labels = [f"{bucket.label}\nn = {bucket.sentences:,}" for bucket in report.buckets]
        plots[-1].set_xticks(range(len(labels)), labels)
        plots[-1].set_xlim(-0.5, len(labels) - 0.5)
        plots[-1].set_xlabel("length of the source sentence, and number of sentences")
    return figure


def draw_speeds(rows: Sequence[Speed]) -> Figure:
    """Training and decoding speed as bars, a row for each system; what nobody has is left out."""
    panels = [
        (title, [getattr(row, key) for row in rows], [getattr(row, ratio) for row in rows])
        for title, key, ratio in (
            ("training, target tokens/s", "train_tokens_per_second", "train_ratio"),
            ("decoding, sentences/s", "decode_sentences_per_second", "decode_ratio"),
        )
        if any(getattr(row, key) is not None for row in rows)
    ]
    colors = system_colors([row.name for row in rows])
    # A colour twice would say that two systems belong together.
    look = {"color": list(colors.values()) if len(rows) <= len(PALETTE) else PALETTE[0]}
    with style():
        figure = Figure(figsize=(1.6 + 3.2 * len(panels), 0.8 + 0.36 * len(rows)), layout="constrained")
        plots = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for plot, (title, values, ratios) in zip(plots, panels, strict=True):
            plot.grid(visible=False)
            bars = plot.barh(range(len(rows)), [value or 0 for value in values], height=0.66, **look)
            labels = [_label(value, ratio) for value, ratio in zip(values, ratios, strict=True)]
            plot.bar_label(bars, labels, padding=3, fontsize=8)
            # Room for the labels at the bars' ends.
            plot.set_xlim(0, 1.42 * max(value or 0 for value in values) or 1)
            plot.xaxis.set_major_locator(MaxNLocator(4))
            plot.xaxis.set_major_formatter("{x:,.0f}")
            plot.set_title(title)
            plot.tick_params(axis="y", length=0)
        plots[0].set_yticks(range(len(rows)), [row.name for row in rows])
        plots[0].invert_yaxis()
    return figure


def draw_seeds(report: SeedsReport) -> Figure:
    """A panel for each number: a dot for each seed, dots of a seed that both systems have joined, means as lines."""
    colors = system_colors(report.systems)
    with style():
        figure = Figure(figsize=(3.2 * len(report.comparisons), 3.2), layout="constrained")
        plots = figure.subplots(1, len(report.comparisons), squeeze=False)[0]
        for plot, comparison in zip(plots, report.comparisons, strict=True):
            plot.grid(visible=False, axis="x")
            for of_seed in comparison.seeds:
                plot.plot((0, 1), (of_seed.baseline, of_seed.system), color=INK, linewidth=0.7, alpha=0.5, zorder=1)
            for place, (name, figures) in enumerate(
                zip(report.systems, (comparison.baseline, comparison.system), strict=True)
            ):
                plot.scatter([place] * len(figures.values), figures.values, color=colors[name], s=26, zorder=2)
                plot.hlines(figures.mean, place - 0.18, place + 0.18, color=colors[name], linewidth=2, zorder=2)
            plot.set_xticks((0, 1), report.systems)
            plot.set_xlim(-0.5, 1.5)
            plot.yaxis.set_major_locator(MaxNLocator(6))
            plot.set_ylabel(comparison.column.label)
    return figure


def _label(value: float | None, ratio: float | None) -> str:
    if value is None:
        return "-"
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    return shown if ratio is None else f"{shown}, {ratio:.2f} x"


DRAWINGS: dict[str, Callable[[Any], Figure]] = {
    "alignments": draw_alignment,
    "boundaries": draw_boundaries,
    "channel-attention": draw_channel_attention,
    "compare": draw_comparison,
    "entropy": draw_focus,
    "length": draw_lengths,
    "memory": draw_memories,
    "seeds": draw_seeds,
    "speed": draw_speeds,
}
"""Command of :mod:`fairseq_plugins.analysis` → what draws its figures."""
