"""How fast systems train and decode, from the ``results.json`` of their work folders.

Training is in target tokens a second of updates, without validation and checkpoints; decoding in sentences a second of
beam search, as fairseq-generate says it. Figures compare only where the device is the same.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..experiments.run import Run
from ..terminal import table
from .result import Analysis, Panel

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Speed:
    """One system. What its ``results.json`` does not say is None.

    Attributes:
        name: the end of the work folder's path that tells it from the others.
        config: the configuration's file.
        device: what it was trained on.
        parameters: how many.
        updates: how many.
        train_seconds: all of the training.
        train_tokens_per_second, decode_sentences_per_second: its speed.
        train_ratio, decode_ratio: its speed by that of the first system.
    """

    name: str
    config: str | None
    device: str | None
    parameters: int | None
    updates: int | None
    train_seconds: float | None
    train_tokens_per_second: float | None
    decode_sentences_per_second: float | None
    train_ratio: float | None
    decode_ratio: float | None


def speeds(folders: Sequence[Path]) -> list[Speed]:
    """The systems in some work folders; ratios are to the first. Warns where devices differ.

    Raises:
        InputError: a folder is given twice, has no ``results.json``, or one with neither speed.
    """
    results = [_results(folder) for folder in folders]
    first = results[0]
    rows = [
        Speed(
            name=name,
            config=values.get("config"),
            device=values.get("device"),
            parameters=values.get("parameters"),
            updates=values.get("updates"),
            train_seconds=values.get("train_seconds"),
            train_tokens_per_second=values.get("train_tokens_per_second"),
            decode_sentences_per_second=values.get("decode_sentences_per_second"),
            train_ratio=_ratio(values, first, "train_tokens_per_second"),
            decode_ratio=_ratio(values, first, "decode_sentences_per_second"),
        )
        for name, values in zip(_names(folders), results, strict=True)
    ]
    devices: dict[str, str] = {}
    for row in rows:
        if row.device is not None:
            devices.setdefault(row.device, row.name)
    if len(devices) > 1:
        shown = "; ".join(f"{name} on {device}" for device, name in devices.items())
        logger.warning(f"the systems ran on different devices, so their speeds do not compare: {shown}")
    return rows


def _results(folder: Path) -> dict[str, Any]:
    """A work folder's ``results.json``, with a speed at least."""
    path = folder / "results.json"
    if not path.exists():
        raise InputError(f"{path}: no such file; give the work folder of a training, 'fairseq-plugins train' writes it")
    values = Run(folder).results
    keys = ("train_tokens_per_second", "decode_sentences_per_second")
    if all(values.get(key) is None for key in keys):
        raise InputError(f"{path}: neither {' nor '.join(keys)}; train the system with 'fairseq-plugins train'")
    for key in (*keys, "train_seconds", "parameters", "updates"):
        if not isinstance(value := values.get(key), (int, float, type(None))):
            raise InputError(
                f"{path}: {key} is {value!r}, not a number; delete it: training and evaluation write it anew"
            )
    return values


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that differ, as long for each."""
    parts = [folder.absolute().parts for folder in folders]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(of_folder[-length:]) for of_folder in parts]
        if len(set(names)) == len(names):
            return names
    twice = next(folder for index, folder in enumerate(folders) if parts[index] in parts[:index])
    raise InputError(f"{twice}: given twice; name every work folder once")


def _ratio(results: dict[str, Any], first: dict[str, Any], key: str) -> float | None:
    speed, other = results.get(key), first.get(key)
    return speed / other if speed is not None and other else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command ``speed``."""
    parser.add_argument(
        "work", nargs="+", metavar="WORK", type=Path, help="work folder; ratios are to the speeds of the first"
    )


def run(arguments: argparse.Namespace) -> Analysis:
    """The command ``speed``.

    Raises:
        InputError: a folder is given twice, has no ``results.json``, or one with neither speed.
    """
    rows = speeds(arguments.work)
    numbers = {"systems": [asdict(row) for row in rows]}
    return Analysis(numbers, [Panel(rows)], table([_row(row) for row in rows]))


def _row(row: Speed) -> dict[str, str | float | None]:
    """A system as a row of the table that is printed."""
    return {
        "system": row.name,
        "parameters": row.parameters,
        "updates": row.updates,
        "training seconds": row.train_seconds,
        "tokens/s": row.train_tokens_per_second,
        "tokens/s, x": row.train_ratio,
        "sentences/s": row.decode_sentences_per_second,
        "sentences/s, x": row.decode_ratio,
        "device": row.device,
    }
