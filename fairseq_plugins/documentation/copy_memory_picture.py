"""``docs/pictures/copy_memory.svg``: how networks learn to remember, as in DilatedRNN's Figure 3."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from ..files import sha256
from ..report.style import INK, MARKERS, add_legend, rendered, style, system_colors
from .notes import DATA

NO_KNOWLEDGE = math.log2(8)
"""Bits of loss of a network that knows the eight symbols and remembers none."""


def picture(existing: str, path: Path = DATA / "copy_memory.json") -> str:
    """The drawing as SVG.

    Another version of matplotlib draws the same figures with other bytes; a picture that was drawn from these data
    stays as it is.

    Args:
        existing: the picture as it is, or an empty text
        path: as for :func:`.notes.copy_memory`
    """
    mark = f"<!-- of {path.name}, sha256 {sha256(path)} -->"
    if mark in existing:
        return existing
    return f"{rendered(draw(path), 'svg').decode().rstrip()}\n{mark}\n"


def draw(path: Path) -> Figure:
    """Validation loss in bits by updates: a row for each length, a column for each cell, a line for each network."""
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    lengths = sorted({run["length"] for run in runs})
    cells = list(dict.fromkeys(run["cell"] for run in runs))
    # What a network is called begins with its kind.
    kinds = list(dict.fromkeys(run["network"].partition(",")[0] for run in runs))
    colors, markers = system_colors(kinds), dict(zip(kinds, MARKERS, strict=False))
    with style():
        figure = Figure(figsize=(1.4 + 3.2 * len(cells), 0.6 + 3.0 * len(lengths)), layout="constrained")
        panels = figure.subplots(len(lengths), len(cells), sharex=True, sharey=True, squeeze=False)
        for (row, length), (column, cell) in itertools.product(enumerate(lengths), enumerate(cells)):
            plot = panels[row, column]
            plot.axhline(NO_KNOWLEDGE, color=INK, linewidth=0.8, linestyle="--")
            for run in runs:
                if (run["length"], run["cell"]) == (length, cell):
                    kind = run["network"].partition(",")[0]
                    points = sorted((int(updates), bits) for updates, bits in run["validation_bits"].items())
                    look = {"color": colors[kind], "marker": markers[kind], "markersize": 4.5, "linewidth": 1.4}
                    plot.plot(*zip(*points, strict=True), label=kind, **look)
            plot.set_title(f"T = {length:,}, {cell}")
            plot.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            plot.set_ylim(bottom=0)
        figure.supxlabel("updates")
        figure.supylabel("validation loss (bits)")
        lines = [line for plot in panels.flat for line in plot.get_lines() if line.get_label() in kinds]
        add_legend(figure, list({line.get_label(): line for line in lines}.values()))
    return figure
