"""What the Snakefile asks of a table: its trainings, their data, and the options of their commands."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..experiments import configuration as configurations
from ..experiments.builtin_corpora import builtin_corpus
from ..experiments.processes import shown
from .tables import SmallScale, Table, as_arguments, load_small_scale, load_table, trainable


@dataclass(frozen=True)
class Steps:
    """A table as the command line asks for it. A training's place is ``<data set>/<system>/seed_<seed>`` in ``work``.

    Attributes:
        table: what is reproduced
        work: where everything goes, an absolute path
        scale: ``paper`` or ``small``
        seeds: of each system's trainings
        gpus: how many trainings run at the same time with a GPU each; 0 for the CPU
        data: prepared data for all rows, instead of that of their configurations
        max_update: the same number of updates for all rows, instead of what their configurations say
    """

    table: Table
    work: Path
    scale: str = "paper"
    seeds: tuple[int, ...] = (1,)
    gpus: int = 0
    data: Path | None = None
    max_update: int | None = None
    _configurations: dict[tuple[str, str], Path] = field(init=False, repr=False, default_factory=dict)
    _data: dict[tuple[str, str], Path] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for path in self.table.configurations:
            configuration = configurations.load(path)
            system = configuration.dataset, configuration.model
            self._configurations[system] = path
            self._data[system] = self.data or configuration.data_folder

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Steps:
        """The steps that Snakemake's ``config`` describes; a dry run shows those too whose data are not prepared."""
        table = load_table(config["table"], config.get("recipe"))
        scale = config["scale"]
        data = Path(config["data"]) if "data" in config else None
        if scale == "paper" and not config["dry_run"]:
            table = trainable(table, data)
        seeds = tuple(int(seed) for seed in config["seeds"])
        return cls(table, Path(config["work"]), scale, seeds, config["gpus"], data, config.get("max_update"))

    @property
    def trainings(self) -> list[str]:
        """The place of each training."""
        return [f"{data_set}/{system}/seed_{seed}" for data_set, system in self._configurations for seed in self.seeds]

    def configuration(self, data_set: str, system: str) -> Path:
        """The file that describes a system."""
        return self._configurations[data_set, system]

    def prepared_data(self, data_set: str, system: str) -> Path:
        """The folder of a system's prepared data."""
        if self.scale == "small":
            return self.work / "corpora" / data_set / "data"
        return self._data[data_set, system]

    def required_files(self, data_set: str) -> list[str]:
        """What has to be made before a training: at small scale its data; else the user has prepared them."""
        return [f"corpora/{data_set}/data/preparation.json"] if self.scale == "small" else []

    def preparation(self, data_set: str) -> str:
        """The command that makes the data of the small scale."""
        small = load_small_scale(data_set)
        text, data = (self.work / "corpora" / data_set / part for part in ("text", "data"))
        commands = builtin_corpus(small.corpus, text, data, as_arguments(small.preparation))
        return " && ".join(shown([str(part) for part in command]) for command in commands)

    def train_options(self, data_set: str, system: str) -> list[str]:
        """What fairseq-train is told beside the configuration."""
        options = self._small(data_set).train_options(system)
        if self.max_update is not None:
            options["max-update"] = self.max_update
        return as_arguments(options)

    def evaluations(self, data_set: str, system: str) -> list[str]:
        """The options of each evaluation, those of one as a line."""
        sets = ("test",) if self.scale == "small" else self.table.measure.sets
        config = self.configuration(data_set, system)
        variants = dict.fromkeys(row.variant for row in self.table.rows if row.config == config)
        generate = as_arguments(self._small(data_set).generate)
        return [
            shown(["--subset", name, *generate, *([] if variant is None else [f"--{variant}"])])
            for variant in variants
            for name in sets
        ]

    @property
    def gpu_slot(self) -> list[str]:
        """What a command with a GPU of its own begins with; nothing on the CPU."""
        return [sys.executable, "-m", "fairseq_plugins.tables.gpu_slots", "--"] if self.gpus > 0 else []

    @property
    def writing(self) -> list[str]:
        """The command that writes the table."""
        recipe, data = self.table.recipe, self.data
        return [
            *(sys.executable, "-m", "fairseq_plugins.tables.writing", self.table.name, "--scale", self.scale),
            *([] if recipe is None else ["--recipe", recipe]),
            *([] if data is None else ["--data", str(data)]),
            *("--work", str(self.work), "--seeds", *map(str, self.seeds)),
        ]

    def _small(self, data_set: str) -> SmallScale:
        return load_small_scale(data_set) if self.scale == "small" else SmallScale("", {}, {}, {}, {})
