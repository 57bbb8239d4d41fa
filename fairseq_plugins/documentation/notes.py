"""The tables of ``docs/notes/``, made of the files in ``docs/notes/data/`` or of records: how trainings went."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..experiments.record_groups import Figure, groups, has_own_budget
from ..experiments.records import BEST, Record
from ..package_files import ROOT
from ..tables.writing import markdown
from .results_page import NOT_RECORDED, NOTHING
from .trials import first_reduction

DATA = ROOT / "docs" / "notes" / "data"


def first_updates(path: Path = DATA / "first_1000_updates.json") -> str:
    """Development perplexity after some updates: a row for each network with its options, over the seeds.

    Args:
        path: ``{"runs": [{"network", "options", "seed", "perplexity": {updates: number}}]}``; a run may end earlier
    """
    runs = _runs(path)
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["network"], run["options"]), []).append(run)
    columns = {
        "network": [network for network, _ in groups],
        "options": [_code(options) for _, options in groups],
    }
    for updates in sorted({updates for run in runs for updates in run["perplexity"]}, key=int):
        columns[f"{int(updates):,} updates"] = [
            _range(tuple(run["perplexity"][updates] for run in members if updates in run["perplexity"]))
            for members in groups.values()
        ]
    return "\n".join(markdown(columns))


def first_epochs(hidden_size: int, path: Path = DATA / "first_epochs_multi30k.json", digits: int = 3) -> str:
    """Bits a token in training and on the development set: a row for each run.

    Args:
        hidden_size: of the networks that are shown
        path: ``{"runs": [{"hidden_size", "network", "options", "seed", "training_bits": {updates: mean of the last
            hundred}, "development_bits": [after each epoch]}]}``, and ``seed_of_initial_weights`` where it is another
        digits: of the development set's figures, after the point
    """
    runs = [run for run in _runs(path) if run["hidden_size"] == hidden_size]
    columns = {
        "network": [run["network"] for run in runs],
        "options": [_code(run["options"]) for run in runs],
        "seed": [str(run["seed"]) + _weights(run) for run in runs],
    }
    for updates in sorted({int(updates) for run in runs for updates in run["training_bits"]})[1:]:
        cells = [run["training_bits"].get(str(updates)) for run in runs]
        columns[f"{updates - 99} to {updates}"] = [_number(cell, 2) for cell in cells]
    return "\n".join(markdown(columns | _development(runs, "development, epoch", digits)))


def epochs(path: Path = DATA / "ten_epochs_multi30k.json") -> str:
    """Bits a token on the development set after each epoch: a row for each run.

    Args:
        path: ``{"runs": [{"network", "options", "seed", "development_bits": [after each epoch]}]}``; a run may
            end earlier
    """
    runs = _runs(path)
    columns = {
        "network": [run["network"] for run in runs],
        "options": [_code(run["options"]) for run in runs],
        "seed": [str(run["seed"]) for run in runs],
    }
    # Where no run has options of its own there is no such column.
    columns = {heading: cells for heading, cells in columns.items() if {*cells} != {NOTHING}}
    return "\n".join(markdown(columns | _development(runs, "epoch", 2)))


def validation_losses(records: Iterable[Record], dataset: str) -> str:
    """Bits a token on the validation set by updates: a row for each recorded run of a data set that kept them.

    Args:
        records: of all runs; those of averaged checkpoints are of trainings that are there with their best one
        dataset: the folder below ``configs/``
    """
    runs = _validated(records, dataset)
    if not runs:
        return f"{NOT_RECORDED.capitalize()}."
    columns = {"system": [f"`{run.system}`" for run in runs], "seed": [str(run.seed) for run in runs]}
    for updates in sorted({int(updates) for run in runs for updates in run.validation_loss}):
        columns[f"{updates:,}"] = [_number(run.validation_loss.get(str(updates)), 2) for run in runs]
    return "\n".join(markdown(columns))


def validation_perplexities(records: Iterable[Record], dataset: str, epochs: Sequence[int]) -> str:
    """Perplexity of the validation set, as the training logs it: a row for each recorded run that kept it, with the
    epoch after which the learning rate was first reduced.

    Args:
        records: as of :func:`validation_losses`, of trainings that validated once an epoch
        dataset: the folder below ``configs/``
        epochs: after which there is a column
    """
    runs = _validated(records, dataset)
    if not runs:
        return f"{NOT_RECORDED.capitalize()}."
    columns = {"network": [f"`{run.system}`" for run in runs], "seed": [str(run.seed) for run in runs]}
    after = [{epoch: 2**bits for epoch, bits in enumerate(run.validation_loss.values(), 1)} for run in runs]
    for epoch in epochs:
        columns[f"epoch {epoch}"] = [_number(perplexities.get(epoch), 2) for perplexities in after]
    reductions = [first_reduction(run) for run in runs]
    columns["rate first reduced after"] = [NOTHING if epoch is None else f"epoch {epoch}" for epoch in reductions]
    return "\n".join(markdown(columns))


def overlong(records: Iterable[Record], dataset: str) -> str:
    """How many translations have over twice the reference's tokens and 20 more: a row for each system and checkpoint.
    All its seeds and sets are counted together.

    Args:
        records: of all runs; those with options of their own, or whose statistics were not kept, are left out
        dataset: the folder below ``configs/``, of translations
    """
    columns: dict[str, list[str]] = {"system": [], "checkpoint": [], "far too long": [], "translations": []}
    for group in groups(record for record in records if record.dataset == dataset and not record.differences):
        every = [record.statistics(subset) for record in group.records for subset in record.scores]
        kept = [rows for rows in every if rows is not None]
        if kept:
            own, reference = np.concatenate(kept)[:, :2].T
            count = np.count_nonzero(own > 2 * reference + 20)
            row = (f"`{group.system}`", group.checkpoint, str(count), f"{len(own):,}")
            for cells, cell in zip(columns.values(), row, strict=True):
                cells.append(cell)
    return "\n".join(markdown(columns)) if columns["system"] else f"{NOT_RECORDED.capitalize()}."


def small_table(path: Path = DATA / "dpn_table_4_small.json") -> str:
    """Scores of the small scale of a table: a row for each system, a column for each recipe.

    Args:
        path: ``{"rows": [{"system", "encoder", "decoder", "bleu": {recipe: number}}]}``
    """
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    columns = {heading: [row[heading] for row in rows] for heading in ("system", "encoder", "decoder")}
    for recipe in dict.fromkeys(recipe for row in rows for recipe in row["bleu"]):
        columns[recipe] = [_number(row["bleu"].get(recipe), 2) for row in rows]
    return "\n".join(markdown(columns))


def _validated(records: Iterable[Record], dataset: str) -> list[Record]:
    """The runs of a data set's best checkpoints that kept their validation losses and differ from their configurations
    in how long they trained at most: of each system and seed the longest."""
    longest: dict[tuple[str, int | None], Record] = {}
    for record in records:
        if (record.dataset, record.checkpoint) != (dataset, BEST) or not record.validation_loss:
            continue
        if record.differences and not has_own_budget(record):
            continue
        known = longest.setdefault((record.system, record.seed), record)
        if len(record.validation_loss) > len(known.validation_loss):
            longest[record.system, record.seed] = record
    return [*longest.values()]


def _runs(path: Path) -> Sequence[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["runs"]


def _development(runs: Sequence[dict[str, Any]], heading: str, digits: int) -> dict[str, list[str]]:
    """A column for each epoch."""
    after = [run.get("development_bits", ()) for run in runs]
    rows = itertools.zip_longest(*after)
    return {f"{heading} {epoch}": [_number(bits, digits) for bits in row] for epoch, row in enumerate(rows, 1)}


def _code(options: str) -> str:
    return f"`{options}`" if options.startswith("--") else options or NOTHING


def _range(values: tuple[float, ...]) -> str:
    if not values:
        return NOTHING
    figure = Figure(values)
    return figure.range(".2f") + (f" ({figure.mean:.2f}, {len(values)} seeds)" if len(values) > 1 else "")


def _weights(run: dict[str, Any]) -> str:
    seed = run.get("seed_of_initial_weights")
    return "" if seed is None else f", weights {seed}"


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"
