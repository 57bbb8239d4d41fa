"""What the parts of ``gpu.py`` share: a cell and its figures, the file that keeps them, and the table made of it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from timing import Timing

from fairseq_plugins.errors import InputError
from fairseq_plugins.files import atomic_file, write_json
from fairseq_plugins.kernels import BACKEND_VARIABLE

PRECISIONS = ("bf16", "tf32", "fp32")


@dataclass(frozen=True)
class Plan:
    """What one call measures with.

    Attributes:
        device: of the tensors.
        dry: so small that the figures say nothing.
        repetitions: of what takes turns.
        log: where outputs of commands and whole error messages go.
        work: a folder for checkpoints and for data that is made here.
        data: prepared data to train on; None where none was given.
        backend: of trainings by command; None for the one that is chosen by itself.
        training_seconds: how long each system of the part ``training`` trains.
        systems: that train; the first alone in a dry run.
    """

    device: str
    dry: bool
    repetitions: int
    log: Path
    work: Path
    data: Path | None = None
    backend: str | None = None
    training_seconds: float = 60
    systems: tuple[str, ...] = ("MC-RNN-3",)

    @property
    def trained(self) -> tuple[str, ...]:
        """The systems that train."""
        return self.systems[:1] if self.dry else self.systems

    @property
    def layer_repetitions(self) -> int:
        """Layers take less time than models, and vary more."""
        return self.repetitions if self.dry else 3 * self.repetitions

    def write_log(self, title: str, text: str) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "a", encoding="utf-8") as stream:
            stream.write(f"== {title}\n{text.rstrip()}\n\n")


class Figure(NamedTuple):
    """One number of a cell. ``ratio`` is to ``peer``, of the same run: of times or of speeds, whatever ``unit`` is."""

    measured: str
    value: float
    unit: str = ""
    spread_percent: float | None = None
    ratio: float | None = None
    peer: str | None = None

    @classmethod
    def of_times(cls, measured: str, timings: Mapping[str, Timing], name: str, peer: str, parts: int = 1) -> Figure:
        """The time of a candidate, a ``parts``-th of what was timed, and its ratio to the peer's."""
        own, other = timings[name], timings[peer]
        return cls(measured, 1000 * own.median / parts, "ms", own.spread_percent, own.median / other.median, peer)


class Cell(NamedTuple):
    """What is measured, or fails, as one.

    Attributes:
        part: of ``gpu.py --parts``.
        subject: a layer, a model, tests.
        size: of what, in words.
        precision: of ``PRECISIONS``, or another; empty where it has none.
        backend: what FAIRSEQ_PLUGINS_BACKEND is while it is measured; empty for what is chosen by itself.
        measure: does it.
        seconds: how long it takes at most; it is not begun where fewer are left, and ended after them.
    """

    part: str
    subject: str
    size: str
    precision: str
    backend: str
    measure: Callable[[], Sequence[Figure]]
    seconds: float = 60

    @property
    def name(self) -> str:
        return " / ".join(filter(None, (self.part, self.subject, self.size, self.precision, self.backend)))


class Record:
    """The JSON file with every cell that was measured or failed. Every change is written at once, whole or not at all.

    Raises:
        InputError: the file is of another machine, or no such file.
    """

    def __init__(self, path: Path, versions: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.content: dict[str, Any] = {"versions": dict(versions or {}), "begun": None, "cells": {}}
        if path.exists():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                self.content = {key: content[key] for key in self.content}
            except (ValueError, TypeError, KeyError):
                raise InputError(f"{path}: not a file of this benchmark; give another --continue") from None
            if versions is not None and self.content["versions"] != dict(versions):
                raise InputError(
                    f"{path} was measured elsewhere ({_listed(self.content['versions'])}), "
                    f"this is {_listed(versions)}; give another --continue"
                )

    @property
    def cells(self) -> dict[str, dict[str, Any]]:
        """Name → what is in its place."""
        return self.content["cells"]

    def begin(self, cell: Cell) -> None:
        """Notes that a cell is under way, for whoever finds that this process has died."""
        self.content["begun"] = {"name": cell.name, **_described(cell), "seconds": cell.seconds}
        self._write()

    def finish(self, cell: Cell, figures: Sequence[Figure]) -> None:
        self.content["begun"] = None
        self.cells[cell.name] = {**_described(cell), "figures": [figure._asdict() for figure in figures]}
        self._write()

    def fail(self, cell: Cell, reason: str) -> None:
        self.content["begun"] = None
        self.cells[cell.name] = {**_described(cell), "failed": reason}
        self._write()

    def fail_begun(self, reason: str) -> str | None:
        """Puts the reason in the place of the cell that was under way; returns its name, None where there was none."""
        begun = self.content["begun"]
        if begun is None:
            return None
        described = {key: value for key, value in begun.items() if key not in ("name", "seconds")}
        self.cells[begun["name"]] = {**described, "failed": reason}
        self.content["begun"] = None
        self._write()
        return begun["name"]

    def forget_begun(self) -> None:
        """A cell that was under way when somebody stopped an earlier call has not failed."""
        self.content["begun"] = None
        self._write()

    def forget_failures(self) -> None:
        self.content["cells"] = {name: cell for name, cell in self.cells.items() if "failed" not in cell}
        self._write()

    def _write(self) -> None:
        write_json(self.path, self.content)


def _described(cell: Cell) -> dict[str, str]:
    return {field: getattr(cell, field) for field in ("part", "subject", "size", "precision", "backend")}


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def table(record: Record) -> str:
    """All cells as one Markdown table, in the order in which they were first measured, part after part."""
    head = ["part", "what", "size", "precision", "backend", "measured", "figure", "spread", "ratio", "to"]
    lines = [head, ["---"] * len(head)]
    # Parts stay together, whatever the calls that measured them.
    parts = list(dict.fromkeys(cell["part"] for cell in record.cells.values()))
    for cell in sorted(record.cells.values(), key=lambda cell: parts.index(cell["part"])):
        start = [cell[key] for key in ("part", "subject", "size", "precision", "backend")]
        if "failed" in cell:
            lines.append([*start, "failed", cell["failed"].replace("|", "\\|"), "", "", ""])
        for entry in cell.get("figures", ()):
            figure = Figure(**entry)
            spread = "" if figure.spread_percent is None else f"± {figure.spread_percent:.1f} %"
            ratio = "" if figure.ratio is None else f"{figure.ratio:.2f} x"
            value = f"{_number(figure.value)} {figure.unit}".strip()
            lines.append([*start, figure.measured, value, spread, ratio, figure.peer or ""])
    return (
        f"{_listed(record.content['versions'])}. Medians; the spread is half the distance between the quartiles in "
        "percent.\nThe ratio is to the peer of the same run in the same precision: of times below 1 is faster, of "
        "speeds above 1.\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)
    )


def write_table(record: Record) -> Path:
    """Writes the table beside the JSON file."""
    path = record.path.with_suffix(".md")
    with atomic_file(path) as stream:
        stream.write(table(record))
    return path


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def set_precision(precision: str) -> torch.dtype:
    """Lets products of float32 round to TF32, cuDNN's and ours alike, or none of them; returns the type of tensors."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    return torch.bfloat16 if precision == "bf16" else torch.float32


@contextlib.contextmanager
def on_backend(name: str) -> Iterator[None]:
    """FAIRSEQ_PLUGINS_BACKEND while the block runs, here and in commands that it starts."""
    before = os.environ.pop(BACKEND_VARIABLE, None)
    if name:
        os.environ[BACKEND_VARIABLE] = name
    try:
        yield
    finally:
        os.environ.pop(BACKEND_VARIABLE, None)
        if before is not None:
            os.environ[BACKEND_VARIABLE] = before
