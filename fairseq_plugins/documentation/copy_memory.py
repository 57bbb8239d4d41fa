"""Copy memory's validation losses by updates (DilatedRNN, Figure 3): tables and ``docs/pictures/copy_memory.svg``."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from ..experiments.records import Record
from ..report.style import INK, MARKERS, add_legend, rendered, style, system_colors
from ..tables.writing import markdown
from .results_page import NOT_RECORDED

NO_KNOWLEDGE = math.log2(8)
"""Bits of loss of a network that knows the eight symbols and remembers none."""
PREFIX = "copy_memory_"
"""Of the data sets' names; the number of blank steps follows."""
NETWORKS = {
    "dilated": "dilated, 9 layers",
    "": "plain, 1 layer of 256",
    "stacked": "stacked, 9 layers",
    "skip": "skip, 9 layers that also read 256 steps back",
}
"""What the names of configurations begin with → the network."""
CELLS = {"rnn": "tanh", "gru": "GRU", "lstm": "LSTM"}
"""What they end with → its cell."""


@dataclass(frozen=True)
class Curve:
    """How a network learned.

    Attributes:
        length: T
        network, cell: of :data:`NETWORKS` and :data:`CELLS`
        seed: of the training
        bits: (updates, validation loss)
    """

    length: int
    network: str
    cell: str
    seed: int | None
    bits: tuple[tuple[int, float], ...]

    @property
    def kind(self) -> str:
        """What its network is called in short."""
        return self.network.partition(",")[0]


def curves(records: Iterable[Record]) -> list[Curve]:
    """Every recorded network's, in the order of the tables. Of runs with one seed the one with most updates counts: the
    others are its beginning."""
    longest: dict[tuple[int, str, str, int | None], Curve] = {}
    for record in records:
        # An option other than how long it trains would make it another experiment.
        if not record.dataset.startswith(PREFIX) or not set(record.differences) <= {"max-update"}:
            continue
        kind, _, cell = record.system.rpartition("_")
        bits = tuple((int(updates), loss) for updates, loss in record.validation_loss.items())
        found = Curve(int(record.dataset.removeprefix(PREFIX)), NETWORKS[kind], CELLS[cell], record.seed, bits)
        key = (found.length, found.network, found.cell, found.seed)
        longest[key] = max(longest.get(key, found), found, key=lambda curve: len(curve.bits))
    networks, cells = list(NETWORKS.values()), list(CELLS.values())
    return sorted(
        (curve for curve in longest.values() if curve.bits),
        key=lambda curve: (curve.length, networks.index(curve.network), cells.index(curve.cell), curve.seed or 0),
    )


def table(records: Iterable[Record], length: int) -> str:
    """Bits a symbol on the validation set after some updates: a row for each network.

    Args:
        records: of all runs
        length: T of the networks that are shown
    """
    found = [curve for curve in curves(records) if curve.length == length]
    if not found:
        return f"{NOT_RECORDED.capitalize()}."
    columns = {heading: [str(getattr(curve, heading)) for curve in found] for heading in ("network", "cell", "seed")}
    shown = {updates for curve in found for updates, _ in curve.bits if updates <= 1000 or updates % 1000 == 0}
    for updates in sorted(shown):
        losses = [dict(curve.bits).get(updates) for curve in found]
        columns[f"{updates:,}"] = ["–" if loss is None else f"{loss:.3f}" for loss in losses]
    return "\n".join(markdown(columns))


def picture(records: Iterable[Record], existing: str) -> str:
    """The drawing as SVG.

    Another version of matplotlib draws the same figures with other bytes; a picture that was drawn from these data
    stays as it is, and so it does where nothing is recorded.

    Args:
        records: of all runs
        existing: the picture as it is, or an empty text
    """
    found = curves(records)
    data = json.dumps([asdict(curve) for curve in found])
    mark = f"<!-- of the records' validation losses, sha256 {hashlib.sha256(data.encode()).hexdigest()} -->"
    if mark in existing or not found:
        return existing
    return f"{rendered(draw(found), 'svg').decode().rstrip()}\n{mark}\n"


def draw(found: Sequence[Curve]) -> Figure:
    """Validation loss in bits by updates: a row for each length, a column for each cell, a line for each network."""
    lengths = sorted({curve.length for curve in found})
    cells = list(dict.fromkeys(curve.cell for curve in found))
    kinds = list(dict.fromkeys(curve.kind for curve in found))
    colors, markers = system_colors(kinds), dict(zip(kinds, MARKERS, strict=False))
    with style():
        figure = Figure(figsize=(1.4 + 3.2 * len(cells), 0.6 + 3.0 * len(lengths)), layout="constrained")
        panels = figure.subplots(len(lengths), len(cells), sharex="col", sharey=True, squeeze=False)
        for (row, length), (column, cell) in itertools.product(enumerate(lengths), enumerate(cells)):
            plot = panels[row, column]
            plot.axhline(NO_KNOWLEDGE, color=INK, linewidth=0.8, linestyle="--")
            for curve in found:
                if (curve.length, curve.cell) == (length, cell):
                    look = {"color": colors[curve.kind], "marker": markers[curve.kind], "markersize": 4.5}
                    plot.plot(*zip(*curve.bits, strict=True), label=curve.kind, linewidth=1.4, **look)
            plot.set_title(f"T = {length:,}, {cell}")
            plot.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            plot.set_ylim(bottom=0)
        figure.supxlabel("updates")
        figure.supylabel("validation loss (bits)")
        lines = [line for plot in panels.flat for line in plot.get_lines() if line.get_label() in kinds]
        add_legend(figure, list({line.get_label(): line for line in lines}.values()))
    return figure
