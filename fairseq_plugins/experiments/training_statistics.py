"""``train.jsonl`` of a work folder: the numbers of fairseq's progress lines, a JSON object on each line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import read_lines

_SHOWN = (
    ("loss", "loss", ".3f"),
    ("ppl", "perplexity", ".2f"),
    ("accuracy", "accuracy", ".2f"),
    ("bleu", "BLEU", ".2f"),
    ("lr", "rate", ".3g"),
    ("wps", "words/s", ",.0f"),
)
"""Of the statistics, what a line shows: fairseq's name, ours, and its form."""


def parse_statistics(line: str) -> dict[str, Any] | None:
    """The numbers of a line that fairseq-train writes with ``--log-format json``; None of any other line.

    Returns:
        ``split`` (train_inner, train, valid), ``epoch``, and the numbers by fairseq's names.
    """
    # <time> | INFO | <split> | {"epoch": 1, "<split>_loss": "7.3", …}; inside an epoch without the split.
    *_, split, text = ["", *line.rstrip().split(" | ", 3)]
    try:
        values = json.loads(text)
    except ValueError:
        return None
    if not isinstance(values, dict) or "epoch" not in values:
        return None
    numbers = {}
    for name, value in values.items():
        with contextlib.suppress(TypeError, ValueError):
            numbers[name.removeprefix(f"{split}_")] = float(value)
    return {"split": split, **numbers, "epoch": int(numbers["epoch"])}


def shown_statistics(statistics: Mapping[str, Any]) -> str:
    """Statistics as a line to read: ``epoch 3, 1,200 updates: development loss 3.214, perplexity 9.28``."""
    when = f"epoch {statistics['epoch']}, {int(statistics.get('num_updates', 0)):,} updates"
    split = {"valid": "development ", "train": "epoch's "}.get(statistics["split"], "")
    shown = [f"{label} {statistics[name]:{form}}" for name, label, form in _SHOWN if name in statistics]
    return f"{when}: {split}{', '.join(shown)}"


def read_statistics(path: Path) -> list[Mapping[str, Any]]:
    """The lines of a ``train.jsonl``.

    Raises:
        InputError: the file is missing, or a line of it is not what ``fairseq-plugins train`` writes.
    """
    statistics: list[Mapping[str, Any]] = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or "split" not in record:
            raise InputError(f"{path}, line {number}: not a line of statistics; delete this line")
        statistics.append(record)
    return statistics


def follow_statistics(path: Path) -> Callable[[], list[Mapping[str, Any]]]:
    """A function that returns the statistics which were added to a file since it was last called, or since now."""
    read = path.stat().st_size if path.is_file() else 0

    def added() -> list[Mapping[str, Any]]:
        nonlocal read
        if not path.is_file():
            return []
        with open(path, "rb") as stream:
            stream.seek(read)
            whole, newline, _ = stream.read().rpartition(b"\n")
        read += len(whole) + len(newline)
        return [json.loads(line) for line in whole.splitlines()]

    return added


def by_split(statistics: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Those with a number of updates, by ``split``. Where a training went on from a checkpoint, what it had done after
    it is left out."""
    splits: dict[str, list[Mapping[str, Any]]] = {}
    for record in statistics:
        if "num_updates" in record:
            earlier = splits.setdefault(record["split"], [])
            while earlier and earlier[-1]["num_updates"] >= record["num_updates"]:
                earlier.pop()
            earlier.append(record)
    return splits


def losses_of(statistics: Iterable[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """(updates, loss): ``nll_loss`` where the criterion has it, since ``loss`` would count the smoothing of labels."""
    return [
        (record["num_updates"], record.get("nll_loss", record.get("loss")))
        for record in statistics
        if "nll_loss" in record or "loss" in record
    ]
