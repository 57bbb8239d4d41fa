"""How the time and memory of whole models grow with sentences' length, batch and vocabulary, one at a time.

``scaling.py --models`` runs it. Around 16 sentences of 25 tokens and 8,000 types: a training update of ``models.py``
and its beam search (beam 5, to as many tokens as the sources have). Each point is measured in a process of its own:
memory as ``memory.py`` does, time in seconds of the processor, so that others may use the machine. It is the median of
the runs that fit into half a second, after one that does not count unless it took longer than that. A process that
takes more of the processor's time than the budget is ended; that point and the larger ones are left out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from memory import MIB, OverBudgetError, alone, peak, update
from models import batch, beam_search, model_of, task_of
from timing import exponent, write_json

from fairseq_plugins.files import atomic_file
from fairseq_plugins.tables.writing import markdown

SYSTEMS = {
    "rnnsearch_iwslt_de_en": "RNNSearch",
    "mc_rnn_iwslt_de_en": "MC-RNN-3",
    "dpn_iwslt_de_en": "DPN-S2S",
    "lstm_as_rnnsearch": "fairseq's lstm",
    "transformer_as_dpn": "fairseq's transformer",
}
CENTRE = {"length": 25, "sentences": 16, "types": 8000}
AXES = {
    "length": [10, 25, 100, 250, 500],
    "sentences": [1, 8, 64, 256, 512],
    "types": [4000, 16_000, 32_000, 100_000],
}
TINY_CENTRE = {"length": 3, "sentences": 2, "types": 20}
TINY_AXES = {"length": [2, 4, 400], "sentences": [1, 2], "types": [10, 20]}
LABELS = {"length": "tokens in a sentence", "sentences": "sentences in a batch", "types": "types in the vocabulary"}
# What is measured: name, unit, and what a figure is divided by to have it.
LONG = 0.5
"""Seconds."""
QUANTITIES = {"update": ("training update", "s", 1), "memory": ("its memory", "MiB", MIB), "search": ("beam 5", "s", 1)}


def seconds(run: Callable[[], object]) -> float:
    """Of the processor, of one run."""
    start = time.process_time()
    run()
    return time.process_time() - start


def median_seconds(first: float, run: Callable[[], object]) -> float:
    """Those of the first run, if it was long; else the median of those that fit into the time."""
    if first > LONG:
        return first
    times: list[float] = []
    while not times or sum(times) < LONG:
        times.append(seconds(run))
    return statistics.median(times)


def measure_update(system: str, size: dict[str, int], threads: int) -> dict[str, float]:
    run = update(system, size["sentences"], (size["length"], size["length"]), size["types"], threads)
    first: list[float] = []
    return {"memory": peak(lambda: first.append(seconds(run))), "update": median_seconds(first[0], run)}


def measure_search(system: str, size: dict[str, int], threads: int) -> dict[str, float]:
    torch.set_num_threads(threads)
    task = task_of(system, size["types"])
    model = model_of(system, task).eval()
    model.make_generation_fast_(beamable_mm_beam_size=None, need_attn=False)
    length = size["length"]

    def search(sentences: int) -> Callable[[], None]:
        return beam_search(model, task, batch(task, sentences, "cpu", (length, length)), length)

    search(1)()
    run = search(size["sentences"])
    return {"search": median_seconds(seconds(run), run)}


def measure(is_tiny: bool, threads: int, budget: int) -> Iterator[dict[str, Any]]:
    """A row for each point and system; a figure is None where it was left out."""
    centre, axes = (TINY_CENTRE, TINY_AXES) if is_tiny else (CENTRE, AXES)
    works = measure_update, measure_search
    for axis, values in axes.items():
        left_out: set[tuple[str, int]] = set()
        for value in values:
            size = {**centre, axis: value}
            for system in SYSTEMS:
                row: dict[str, Any] = {"axis": axis, **size, "arch": system, **dict.fromkeys(QUANTITIES)}
                for number, work in enumerate(works):
                    if (system, number) in left_out:
                        continue
                    try:
                        row |= alone(lambda work=work, system=system, size=size: work(system, size, threads), budget)
                    except OverBudgetError:
                        left_out.add((system, number))
                yield row


def report(rows: list[dict[str, Any]], machine: str, budget: int) -> str:
    lines = ["# Time and memory of whole models by size", "", f"{machine}, float32; seconds of the processor.", ""]
    lines += [f"One size is varied at a time. A dash: it would have taken more than {budget} s in all."]
    lines += ["p is the exponent of the growth (size^p) over the last three sizes that were measured; linear is 1."]
    for axis in dict.fromkeys(row["axis"] for row in rows):
        of_axis = [row for row in rows if row["axis"] == axis]
        for quantity, (name, unit, scale) in QUANTITIES.items():
            values = list(dict.fromkeys(row[axis] for row in of_axis))
            columns = {LABELS[axis]: [*(f"{value:,}" for value in values), "p"]}
            for system, title in SYSTEMS.items():
                points = _points(of_axis, system, axis, quantity, scale)
                cells = [_figure(dict(points)[value]) if value in dict(points) else "–" for value in values]
                columns[title] = [*cells, f"{exponent(points[-3:]):.2f}" if len(points) > 1 else "–"]
            lines += ["", f"## {name}, {unit}, by {LABELS[axis]}", "", *markdown(columns)]
    return "\n".join(lines) + "\n"


def draw(rows: list[dict[str, Any]], machine: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    axes = list(dict.fromkeys(row["axis"] for row in rows))
    figure, plots = pyplot.subplots(len(QUANTITIES), len(axes), figsize=(14, 11), layout="constrained", sharex="col")
    for axis, column in zip(axes, plots.T, strict=True):
        of_axis = [row for row in rows if row["axis"] == axis]
        for (quantity, (name, unit, scale)), plot in zip(QUANTITIES.items(), column, strict=True):
            for (system, title), marker in zip(SYSTEMS.items(), "os^xv", strict=True):
                points = _points(of_axis, system, axis, quantity, scale)
                plot.plot(*zip(*points, strict=True), marker=marker, label=title)
            plot.set_xscale("log")
            plot.set_yscale("log")
            plot.set_ylabel(f"{name}, {unit}")
            plot.grid(alpha=0.3)
        column[-1].set_xlabel(LABELS[axis])
    plots[0, 0].legend()
    figure.suptitle(machine, fontsize=9)
    with atomic_file(path, "wb") as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None})


def compare(is_tiny: bool, threads: int, budget: int, versions: dict[str, str], folder: Path) -> None:
    """Measures, prints, and writes ``scaling_models_cpu.json``, ``.md`` and ``.svg`` to a folder."""
    machine = ", ".join(f"{name} {version}" for name, version in versions.items()) + f", {threads} threads"
    rows = []
    for row in measure(is_tiny, threads, budget):
        rows.append(row)
        # What there is stays if the run is ended.
        write_json(folder / "scaling_models_cpu.json", {**versions, "threads": str(threads)}, rows)
        print(f"{row['axis']} {row[row['axis']]:,}, {SYSTEMS[row['arch']]}: {_shown(row)}", flush=True)
    text = report(rows, machine, budget)
    with atomic_file(folder / "scaling_models_cpu.md") as stream:
        stream.write(text)
    print("\n" + text)
    draw(rows, machine, folder / "scaling_models_cpu.svg")


def _points(
    rows: Sequence[dict[str, Any]], system: str, axis: str, quantity: str, scale: float
) -> list[tuple[float, float]]:
    return [(row[axis], row[quantity] / scale) for row in rows if row["arch"] == system and row[quantity]]


def _shown(row: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {'left out' if row[quantity] is None else f'{_figure(row[quantity] / scale)} {unit}'}"
        for quantity, (name, unit, scale) in QUANTITIES.items()
    )


def _figure(value: float) -> str:
    """Three digits that count, and no power of ten."""
    return f"{float(f'{value:.3g}'):,g}"
