"""A run: the folder of one training, and all that is known of it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import extensions
from ..corpora.preparation import PREPARATION
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..files import locked, write_json
from ..package_files import ROOT
from ..scoring.metrics import Metric, Outputs, metrics_of
from . import configuration as configurations
from .configuration import Configuration
from .decoding import decoding_of

RESULTS = "results.json"
STATISTICS = "train.jsonl"
LOG = "train.log"


class Run:
    """The folder of one training.

    Args:
        folder: the work folder, which need not be there yet

    Attributes:
        folder: as it was given
        results: what ``results.json`` says of the training and its scores; empty where there is none

    Raises:
        InputError: ``results.json`` is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.results = self._read()

    @classmethod
    def required(cls, folder: str | os.PathLike[str]) -> Run:
        """The run in a folder, its extensions imported.

        Raises:
            InputError: there are no results, they are damaged, or an extension cannot be imported.
        """
        run = cls(folder)
        if not run.results:
            raise InputError(
                f"{run.folder / RESULTS}: no such file; run 'fairseq-plugins train' first, or give its --work"
            )
        extensions.add(map(Path, run.results.get("extensions", ())))
        return run

    def _read(self) -> dict[str, Any]:
        path = self.folder / RESULTS
        if not path.exists():
            return {}
        remedy = "delete it: training and evaluation write it anew"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{path}: not JSON ({error}); {remedy}") from None
        parts = {"subsets": dict, "extensions": list, "options": dict}
        if not isinstance(content, dict) or not all(isinstance(content.get(n, k()), k) for n, k in parts.items()):
            raise InputError(f"{path}: not the results of an experiment; {remedy}")
        return content

    @property
    def is_trained(self) -> bool:
        """Whether a training has left its results."""
        return "updates" in self.results

    @property
    def is_evaluated(self) -> bool:
        """Whether what ``generate/`` has of the test set is of the present model: a training that goes on takes the
        scores away, and leaves the outputs."""
        return "checkpoint" in self.results

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.folder / "checkpoints"

    @property
    def checkpoint(self) -> Path | None:
        """The checkpoint that was evaluated, the first of several; None where it is not there."""
        path = Path(self.results.get("checkpoint", "").split(":")[0])
        return path if path.is_file() else None

    @property
    def last_checkpoint(self) -> Path:
        """The checkpoint that a training goes on from."""
        return self.checkpoints / "checkpoint_last.pt"

    @property
    def log(self) -> Path:
        """What fairseq-train said."""
        return self.folder / LOG

    @property
    def statistics(self) -> Path:
        """The numbers of the training as lines of JSON."""
        return self.folder / STATISTICS

    @property
    def outputs_folder(self) -> Path:
        """What the model made of sets."""
        return self.folder / "generate"

    def outputs(self, metric: Metric, data: PreparedData, subset: str) -> Outputs:
        """What the model made of a set, for what scores it.

        Raises:
            InputError: the set was not evaluated.
        """
        return decoding_of(metric).read(self.outputs_folder, data, subset)

    @property
    def options(self) -> dict[str, str]:
        """What fairseq-train was told, without the dashes."""
        return dict(self.results.get("options", {}))

    @property
    def configuration_path(self) -> Path | None:
        """The configuration that the training was started with; it may have gone since. None where none is known."""
        return ROOT / self.results["config"] if "config" in self.results else None

    @cached_property
    def configuration(self) -> Configuration | None:
        """The configuration that the training was started with; None where none is known, or it has gone.

        Raises:
            InputError: it cannot be read.
        """
        path = self.configuration_path
        if path is None or not path.is_file():
            return None
        return configurations.load(path, self.results.get("recipe"), self.results.get("data"))

    @cached_property
    def data(self) -> PreparedData | None:
        """The prepared data; None where it is not there any more.

        Raises:
            InputError: it is damaged.
        """
        folder = self.results.get("data")
        return PreparedData.load(Path(folder)) if folder and (Path(folder) / PREPARATION).is_file() else None

    @property
    def required_data(self) -> PreparedData:
        """The prepared data.

        Raises:
            InputError: it is not there any more, or damaged.
        """
        if self.data is None:
            raise InputError(f"{self.folder}: its prepared data is not there any more; prepare it again")
        return self.data

    def write(self, results: dict[str, Any]) -> None:
        """Replaces ``results.json``."""
        write_json(self.folder / RESULTS, results)
        self.results = results

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Yields the present results, while nobody else changes them."""
        with locked(self.folder / ".results.lock"):
            self.results = self._read()
            yield self.results

    def update(self, **values: Any) -> None:
        """Sets results and keeps the others; several processes may do so at once.

        Of ``subsets`` the sets that are given are set.
        """
        with self.changing() as present:
            if "subsets" in values:
                values["subsets"] = {**present.get("subsets", {}), **values["subsets"]}
            self.write({**present, **values})


def overview(runs: Mapping[str, Run]) -> tuple[list[dict[str, Any]], list[str]]:
    """Systems side by side, a row each: what they are, and their scores on the test set; and how these were computed.

    Args:
        runs: by the systems' names
    """
    metrics = metrics_of({key for run in runs.values() for key in run.results})
    columns = [column for metric in metrics for column in metric.columns]
    rows = [
        {
            "system": name,
            "parameters": run.results.get("parameters"),
            "updates": run.results.get("updates"),
            "training seconds": run.results.get("train_seconds"),
            **{column.label: run.results.get(column.key) for column in columns},
        }
        for name, run in runs.items()
    ]
    explained = (line for run in runs.values() for metric in metrics for line in metric.explanations(run.results))
    return rows, list(dict.fromkeys(explained))


def configuration_name(path: Path) -> str:
    """A configuration's path as ``results.json`` has it: below :data:`.ROOT`, or absolute."""
    path = path.resolve()
    return str(path.relative_to(ROOT.resolve()) if path.is_relative_to(ROOT.resolve()) else path)
