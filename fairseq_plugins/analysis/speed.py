"""How fast systems train and decode, from the ``results.json`` of their work folders.

Training is in target tokens a second of updates, without validation and checkpoints; decoding in sentences a second of
beam search, as fairseq-generate says it. Figures compare only where the device is the same.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..errors import InputError
from . import figures
from .tables import table

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
            config=found.get("config"),
            device=found.get("device"),
            parameters=found.get("parameters"),
            updates=found.get("updates"),
            train_seconds=found.get("train_seconds"),
            train_tokens_per_second=found.get("train_tokens_per_second"),
            decode_sentences_per_second=found.get("decode_sentences_per_second"),
            train_ratio=_ratio(found, first, "train_tokens_per_second"),
            decode_ratio=_ratio(found, first, "decode_sentences_per_second"),
        )
        for name, found in zip(_names(folders), results, strict=True)
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
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{path}: no such file; give the work folder of a training, scripts/train.sh writes it"
        ) from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); delete it: training and evaluation write it anew") from None
    keys = ("train_tokens_per_second", "decode_sentences_per_second")
    if not isinstance(found, dict) or all(found.get(key) is None for key in keys):
        raise InputError(f"{path}: neither {' nor '.join(keys)}; train the system with scripts/train.sh")
    for key in (*keys, "train_seconds", "parameters", "updates"):
        if not isinstance(value := found.get(key), (int, float, type(None))):
            raise InputError(
                f"{path}: {key} is {value!r}, not a number; delete it: training and evaluation write it anew"
            )
    return found


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
    own, other = results.get(key), first.get(key)
    return own / other if own is not None and other else None


def draw(rows: Sequence[Speed]) -> Figure:
    """Training and decoding speed as bars, a row for each system; what nobody has is left out."""
    panels = [
        (title, [getattr(row, key) for row in rows], [getattr(row, ratio) for row in rows])
        for title, key, ratio in (
            ("training, target tokens/s", "train_tokens_per_second", "train_ratio"),
            ("decoding, sentences/s", "decode_sentences_per_second", "decode_ratio"),
        )
        if any(getattr(row, key) is not None for row in rows)
    ]
    colors = figures.system_colors([row.name for row in rows])
    # A colour twice would say that two systems belong together.
    look = {"color": list(colors.values()) if len(rows) <= len(figures.PALETTE) else figures.PALETTE[0]}
    with figures.style():
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


def _label(value: float | None, ratio: float | None) -> str:
    if value is None:
        return "-"
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    return shown if ratio is None else f"{shown}, {ratio:.2f} x"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command ``speed``."""
    parser.add_argument(
        "work", nargs="+", metavar="WORK", type=Path, help="work folder; ratios are to the speeds of the first"
    )
    figures.add_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """The command ``speed``: writes the figure and the numbers, and prints them.

    Raises:
        InputError: a folder is given twice, has no ``results.json``, or one with neither speed.
    """
    figures.check_prefix(arguments.output)
    rows = speeds(arguments.work)
    figures.save_with_numbers(
        draw(rows), {"systems": [asdict(row) for row in rows]}, arguments.output, arguments.format
    )
    print(table([_row(row) for row in rows]))


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
