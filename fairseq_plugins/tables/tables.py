"""The papers' tables as data: ``configs/tables/*.yaml``, and what ``configs/small.yaml`` makes of a configuration."""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import InputError, nearest
from ..experiments import configuration as configurations
from ..experiments.configuration import Configuration
from ..files import read_lines
from ..package_files import CONFIGURATIONS, ROOT
from .measures import Measure, measure_named

TABLES = CONFIGURATIONS / "tables"
SMALL = CONFIGURATIONS / "small.yaml"
SCALES = ("paper", "small")
BENCHMARKS = {"rcrn_table_10": ROOT / "benchmarks" / "rcrn_table_10.py"}
"""Tables of seconds: nothing is trained for them."""


@dataclass(frozen=True)
class Row:
    """One system of a table.

    Attributes:
        system: its name in the paper
        figures: the paper's, by metric or by evaluation set
        parameters: the paper's number, in millions
        dilation: the largest of the paper's system; None where it has none
        configuration: what trains it; None where the paper quotes somebody else, or where it is ``missing``
        missing: why there is no configuration of a system of the paper's
        flow: the attention flow whose entropy this is
        uncertain: whether the paper's figure may belong to another row
        baselines: the rows that significance is tested against, in the order of the table's
        variant: an option of scripts/evaluate.sh that sets its results apart (``cache``); None for none
        after: what the training goes on from: the best model of another row's configuration; None for nothing
        average: the row is the mean of the rows whose names fit this pattern (``*, RCRN``); None for a system
    """

    system: str
    figures: Mapping[str, float]
    parameters: float | None = None
    configuration: Configuration | None = None
    missing: str | None = None
    flow: str | None = None
    uncertain: bool = False
    baselines: tuple[str, ...] = ()
    variant: str | None = None
    average: str | None = None
    after: Configuration | None = None
    dilation: int | None = None


@dataclass(frozen=True)
class Gain:
    """What a part of a model is said to gain: two rows that differ by it.

    Attributes:
        part: its name in the paper
        without, having: the rows' systems
    """

    part: str
    without: str
    having: str


@dataclass(frozen=True)
class Tuning:
    """An option of fairseq-train that each row chooses by its validation set.

    Attributes:
        option: its name, without the dashes
        values: those of the paper, as they are spelt
    """

    option: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A paper's table.

    Attributes:
        name: of its file
        title: paper, number, data
        measure: what its figures are
        baselines: the systems that significance is tested against, or what they are called where each row has its own
        rows: in the paper's order
        recipe: by which the rows are trained; None where that is each configuration's own
        gains: what the paper says of pairs of rows
        tuning: what each row chooses for itself; None where every row has its configuration's values
        options: further ones of fairseq-train, for every row
        verdict: the page that says what holds of the paper's claims, from the checkout on; None where there is none
        without: what the paper's systems have that ours do not; None for nothing
    """

    name: str
    title: str
    measure: Measure
    baselines: tuple[str, ...]
    rows: tuple[Row, ...]
    recipe: str | None = None
    verdict: str | None = None
    without: str | None = None
    options: tuple[str, ...] = ()
    gains: tuple[Gain, ...] = ()
    tuning: Tuning | None = None

    @property
    def folder(self) -> str:
        """The name of the folder of what is written."""
        return (self.name if self.recipe is None else f"{self.name}_{self.recipe}") + self._with_options

    @property
    def command(self) -> str:
        """What reproduces it."""
        recipe = [] if self.recipe is None else ["--recipe", self.recipe]
        tuned = [] if self.tuning is None else ["--tune"]
        return shlex.join(
            ["scripts/reproduce.sh", self.name, *recipe, *tuned, *(["--", *self.options] if self.options else [])]
        )

    @property
    def systems(self) -> dict[tuple[str, str], Configuration]:
        """Data set and system → what trains it, in the order of the rows."""
        trained = (row.configuration for row in self.rows)
        return {self.system_of(one): one for one in trained if one is not None}

    def system_of(self, configuration: Configuration) -> tuple[str, str]:
        """The names of a configuration's data set and system, whose runs with other options lie elsewhere."""
        return configuration.dataset, configuration.model + self._with_options

    @property
    def _with_options(self) -> str:
        """What tells runs with further options from those without: ``_cross-memory_plain``, ``_tuned``."""
        words = (word.lstrip("-") for word in self.options)
        tuned = "" if self.tuning is None else "_tuned"
        return tuned + "".join("_" + re.sub(r"[^\w.-]+", "-", word) for word in words)


@dataclass(frozen=True)
class SmallScale:
    """What ``--scale small`` makes of the configurations of a dataset.

    Attributes:
        corpus: the task of :func:`..experiments.builtin_corpora.builtin_corpus` whose data take the dataset's place
        preparation: options of scripts/prepare_parallel.sh
        train: options of fairseq-train
        generate: options of fairseq-generate
        systems: options of fairseq-train for the configurations whose name fits a pattern; null takes one back
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
        return {name: value for name, value in options.items() if value is not None}


def load_table(name: str, recipe: str | None = None, options: Sequence[str] = (), is_tuned: bool = False) -> Table:
    """Reads a table.

    Args:
        name: of its file
        recipe: by which every row is trained, in the place of its configuration's own
        options: further ones of fairseq-train, for every row
        is_tuned: whether each row chooses what the table names

    Raises:
        InputError: there is none of that name, a configuration has no such recipe, or nothing is to be chosen.
    """
    path = TABLES / f"{name}.yaml"
    if not path.is_file():
        names = sorted([*(file.stem for file in TABLES.glob("*.yaml")), *BENCHMARKS])
        raise InputError(f"there is no table '{name}'{nearest(name, names)}; there are {', '.join(names)}")
    content = _read(path)
    trained = {
        (entry["config"], entry.get("data")): configurations.load(
            CONFIGURATIONS / entry["config"], recipe, entry.get("data")
        )
        for entry in content["rows"]
        if "config" in entry
    }
    for configuration in trained.values():
        # A metric of the user's own is in an extension that the rows share.
        configuration.load_extensions()
    measure = measure_named(content["metric"], content.get("sets"))
    baselines = _names(content.get("baseline"))
    rows = tuple(
        Row(
            entry["system"],
            {key: entry[key] for key in measure.columns if key in entry},
            entry.get("params"),
            trained.get((entry.get("config"), entry.get("data"))),
            entry.get("missing"),
            entry.get("flow"),
            entry.get("uncertain", False),
            _names(entry["baseline"]) if "baseline" in entry else baselines,
            entry.get("variant"),
            entry.get("average"),
            _predecessor(path, entry, trained),
            entry.get("dilation"),
        )
        for entry in content["rows"]
    )
    tuning = content.get("tune") if is_tuned else None
    if is_tuned and tuning is None:
        raise InputError(f"--tune: {path} names no option that its rows choose by the validation set; leave it out")
    gains = tuple(Gain(entry["part"], *pair) for entry in content.get("gains", ()) for pair in entry["pairs"])
    verdict, without = content.get("verdict"), content.get("without")
    return Table(
        name,
        content["title"],
        measure,
        baselines,
        rows,
        recipe,
        verdict,
        without,
        tuple(options),
        gains,
        tuning and Tuning(tuning["option"], tuple(map(str, tuning["values"]))),
    )


def _predecessor(
    path: Path, entry: Mapping[str, Any], trained: Mapping[tuple[str, str | None], Configuration]
) -> Configuration | None:
    """The configuration whose model a row's training starts from.

    Raises:
        InputError: no row of the table trains it.
    """
    if (name := entry.get("after")) is None:
        return None
    if (predecessor := trained.get((name, entry.get("data")))) is None:
        raise InputError(f"{path}: '{entry['system']}' goes on from {name}, which no row trains; add a row of it")
    return predecessor


def trainable(table: Table, data: Path | None = None) -> Table:
    """The table as it can be trained here: a row whose data are not prepared has a note in place of a configuration.

    Args:
        table: all of it
        data: prepared data that all rows are given, whose configurations' own nobody needs then

    Raises:
        InputError: of no row there are data.
    """
    rows = []
    for row in table.rows:
        if (configuration := row.configuration) is not None:
            folder = data or configuration.data_folder
            if not (folder / "preparation.json").is_file():
                base = Path("configs") / configuration.dataset
                note = f"not trained: {folder} is not there; prepare it as {base}/_base*.yaml says"
                row = dataclasses.replace(row, configuration=None, missing=note)
        rows.append(row)
    if all(row.configuration is None for row in rows):
        notes = "; ".join(dict.fromkeys(row.missing for row in rows if row.missing))
        raise InputError(f"{table.name}: nothing of it can be trained here: {notes}; or try --scale small")
    return dataclasses.replace(table, rows=tuple(rows))


def _names(names: str | list[str] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def load_small_scale(dataset: str) -> SmallScale:
    """Reads what ``--scale small`` makes of the configurations of a dataset (a folder of ``configs/``).

    Raises:
        InputError: nothing is said of it.
    """
    part = next((part for part in _read(SMALL) if dataset in part["data_sets"]), None)
    if part is None:
        raise InputError(f"{SMALL}: no part is for the data set '{dataset}'")
    return SmallScale(
        part["corpus"], *(part.get(section, {}) for section in ("preparation", "train", "generate", "systems"))
    )


def training_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """A command line before ``--``, and what comes after it: options of every training."""
    before = list(itertools.takewhile(lambda word: word != "--", arguments))
    return before, list(arguments[len(before) + 1 :])


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options as they are written on a command line; a flag is True."""
    arguments = []
    for name, value in options.items():
        arguments += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return arguments


def _read(path: Path) -> Any:
    # Numbers of options stay as they are spelt; of figures they are numbers.
    return yaml.safe_load("\n".join(read_lines(path)))
