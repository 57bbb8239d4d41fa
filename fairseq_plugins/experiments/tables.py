"""The papers' tables as data: ``configs/tables/*.yaml``, and what ``configs/small/*.yaml`` makes of a configuration."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import InputError, nearest
from ..files import read_lines
from ..scoring.rouge import METRICS
from .config import CHECKOUT

TABLES = CHECKOUT / "configs" / "tables"
SMALL = CHECKOUT / "configs" / "small"


@dataclass(frozen=True)
class Row:
    """One system of a table.

    Attributes:
        system: its name in the paper
        figures: the paper's, by metric or by evaluation set
        parameters: the paper's number, in millions
        config: the configuration that trains it; None where the paper quotes somebody else, or where it is ``missing``
        missing: why there is no configuration of a system of the paper's
        flow: the attention flow whose entropy this is
        uncertain: whether the paper's figure may belong to another row
    """

    system: str
    figures: Mapping[str, float]
    parameters: float | None = None
    config: Path | None = None
    missing: str | None = None
    flow: str | None = None
    uncertain: bool = False


@dataclass(frozen=True)
class Table:
    """A paper's table.

    Attributes:
        name: of its file
        title: paper, number, data
        metric: ``bleu``, ``rouge`` or ``entropy``
        columns: key of the paper's figures → what it is called; for BLEU on several sets the sets
        baseline: the system that significance is tested against
        options: of fairseq-train for every row, beside those of its configuration
        rows: in the paper's order
    """

    name: str
    title: str
    metric: str
    columns: Mapping[str, str]
    baseline: str | None
    options: Mapping[str, str]
    rows: tuple[Row, ...]

    @property
    def sets(self) -> tuple[str, ...]:
        """The test sets that the paper has figures of; ``test`` where it is one."""
        several = self.metric == "bleu" and "bleu" not in self.columns
        return tuple(self.columns) if several else ("test",)

    @property
    def configurations(self) -> tuple[Path, ...]:
        """Every configuration once, in the order of the rows."""
        return tuple(dict.fromkeys(row.config for row in self.rows if row.config is not None))


@dataclass(frozen=True)
class SmallScale:
    """What ``--scale small`` makes of the configurations of a dataset.

    Attributes:
        corpus: the task of :mod:`fairseq_plugins.corpora.builtin` whose pairs take the place of the dataset's
        preparation: options of scripts/prepare_parallel.sh
        train: options of fairseq-train
        generate: options of fairseq-generate
        systems: options of fairseq-train for the configurations whose name fits a pattern
    """

    corpus: str
    preparation: Mapping[str, Any]
    train: Mapping[str, Any]
    generate: Mapping[str, Any]
    systems: Mapping[str, Mapping[str, Any]]

    def train_options(self, model: str) -> dict[str, Any]:
        """The options of one configuration; of several patterns the last one wins."""
        options = dict(self.train)
        for pattern, values in self.systems.items():
            if fnmatch.fnmatchcase(model, pattern):
                options |= values
        return options


def load_table(name: str) -> Table:
    """Reads a table.

    Raises:
        InputError: there is none of that name.
    """
    path = TABLES / f"{name}.yaml"
    if not path.is_file():
        known = sorted(file.stem for file in TABLES.glob("*.yaml"))
        raise InputError(f"there is no table '{name}'{nearest(name, known)}; there are {', '.join(known)}")
    content = _read(path)
    metric = content["metric"]
    if metric == "rouge":
        columns = dict(METRICS)
    else:
        columns = {key: key for key in content["sets"]} if "sets" in content else {metric: metric}
    rows = tuple(
        Row(
            entry["system"],
            {key: entry[key] for key in columns if key in entry},
            entry.get("params"),
            CHECKOUT / "configs" / entry["config"] if "config" in entry else None,
            entry.get("missing"),
            entry.get("flow"),
            entry.get("uncertain", False),
        )
        for entry in content["rows"]
    )
    if metric == "bleu" and "sets" not in content:
        columns = {"bleu": "BLEU"}
    return Table(name, content["title"], metric, columns, content.get("baseline"), content.get("options", {}), rows)


def load_small_scale(dataset: str) -> SmallScale:
    """Reads what ``--scale small`` makes of the configurations of a dataset (a folder of ``configs/``)."""
    content = _read(SMALL / f"{dataset}.yaml")
    return SmallScale(
        content["corpus"],
        content["preparation"],
        content.get("train", {}),
        content.get("generate", {}),
        content.get("systems", {}),
    )


def _read(path: Path) -> dict[str, Any]:
    # Numbers of options stay as they are spelt; of figures they are numbers.
    return yaml.safe_load("\n".join(read_lines(path)))
