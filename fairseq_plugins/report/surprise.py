"""A line of a test set as language models read it: how surprised each is by each word."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from ..corpora.running_text import RunningTextPreparation
from ..experiments.run import Run
from ..files import read_lines
from ..scoring.metrics import read_numbers
from ..symbols import END
from .page import Drawing
from .style import PALETTE, inline_svg, style

LENGTHS = range(8, 31)
"""Tokens of a line that is shown; a longer one is cut off."""


def surprise_figures(runs: Mapping[str, Run]) -> list[Drawing]:
    """One line of the test set; nothing where no language model has read it, as it is now, or its data is not
    there any more.

    Args:
        runs: by their systems' names, of the same data
    """
    lines: list[str] = []
    read: dict[str, list[list[float]]] = {}
    for name, run in runs.items():
        path = run.outputs_folder / "test.log_probabilities.txt"
        data = run.data if run.is_evaluated else None
        if path.is_file() and data is not None and isinstance(data.preparation, RunningTextPreparation):
            lines = list(read_lines(data.folder / "tokens" / "test.txt"))
            read[name] = read_numbers(path)
    if not read:
        return []
    lengths = [len(line.split()) + 1 for line in lines]
    # From the middle of the text on, where there is something to remember.
    order = [*range(len(lines) // 2, len(lines)), *range(len(lines) // 2)]
    chosen = next((place for place in order if lengths[place] in LENGTHS), order[0])
    tokens = [*lines[chosen].split(), END][: LENGTHS[-1]]
    # What was read before the data was prepared anew is of other lines.
    bits = {
        name: [-value / math.log(2) for value in values[chosen][: len(tokens)]]
        for name, values in read.items()
        if [len(line) for line in values] == lengths
    }
    if not bits:
        return []
    figure = draw_surprise(tokens, bits)
    caption = f"Line {chosen + 1:,} of the test set, its end included: minus the logarithm (base 2) of the probability."
    return [Drawing(title="Surprise of each word", caption=caption, svg=inline_svg(figure, "surprise"))]


def draw_surprise(tokens: Sequence[str], bits: Mapping[str, Sequence[float]]) -> Figure:
    """Bits of each token, a bar for each system."""
    width = 0.8 / len(bits)
    with style():
        figure = Figure(figsize=(max(6.8, 0.32 * len(tokens)), 2.8), layout="constrained")
        axis = figure.subplots()
        for number, (name, values) in enumerate(bits.items()):
            places = [place - 0.4 + width * (number + 0.5) for place in range(len(tokens))]
            axis.bar(places, values, width, label=name, color=PALETTE[number % len(PALETTE)])
        axis.set_xticks(range(len(tokens)), tokens, rotation=90)
        axis.tick_params(axis="x", length=0)
        axis.set_ylabel("bits")
        if len(bits) > 1:
            axis.legend()
    return figure
