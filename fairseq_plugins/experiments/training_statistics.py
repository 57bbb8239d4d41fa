"""``train.jsonl`` of a work folder: the numbers of fairseq's progress lines, a JSON object on each line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import read_lines

STATISTICS = "train.jsonl"


def parse_statistics(line: str) -> dict[str, Any] | None:
    """The numbers of fairseq's progress lines, with ``split`` (train_inner, train, valid) and ``epoch``; else None."""
    found = re.match(r"\S+ \S+ \| INFO \| (\w+) \| epoch (\d+)(.*)", line)
    if not found:
        return None
    split, epoch, rest = found.groups()
    # Inside an epoch: ":  100 / 726 loss=7.3, ppl=164"; at its end: " | loss 7.3 | ppl 164".
    pairs = re.findall(r"([\w.]+)=([^\s,]+)", rest) or re.findall(r"\| ([\w.]+) (\S+)(?= \||\s*$)", rest)
    numbers = {}
    for name, text in pairs:
        try:
            numbers[name] = float(text)
        except ValueError:
            continue
    return {"split": split, "epoch": int(epoch), **numbers}


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
