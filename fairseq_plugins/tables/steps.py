"""What the Snakefile asks of a table: its systems, their data, and the options of their commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..experiments.builtin_corpora import builtin_corpus
from ..experiments.configuration import Configuration
from ..experiments.processes import shown
from .tables import SmallScale, Table, as_arguments, load_small_scale, load_table, trainable


@dataclass(frozen=True)
class Steps:
    """A table as the command line asks for it; a system is known by the data set's and the configuration's name.

    Attributes:
        table: what is reproduced
        scale: ``paper`` or ``small``
        work: where everything goes, an absolute path
        data: prepared data for all rows, instead of that of their configurations
        max_update: the same number of updates for all rows, instead of what their configurations say
    """

    table: Table
    scale: str
    work: Path
    data: Path | None = None
    max_update: int | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Steps:
        """The steps that Snakemake's ``config`` describes; a dry run shows those too whose data are not prepared."""
        table = load_table(config["table"], config.get("recipe"), config.get("options", ()), "is_tuned" in config)
        data = Path(config["data"]) if "data" in config else None
        if config["scale"] == "paper" and "dry_run" not in config:
            table = trainable(table, data)
        return cls(table, config["scale"], Path(config["work"]), data, config.get("max_update"))

    @property
    def systems(self) -> dict[tuple[str, str], Configuration]:
        """The configuration of each system."""
        return self.table.systems

    def configuration(self, data_set: str, system: str) -> list[str]:
        """How a command is told the configuration of a system."""
        configuration = self.systems[data_set, system]
        recipe = [] if configuration.recipe is None else ["--recipe", configuration.recipe]
        return [str(configuration.path), *recipe]

    def prepared_data(self, data_set: str, system: str) -> Path:
        """The folder of a system's prepared data, which is below where the user stands or in ``work``."""
        if self.scale == "small":
            return self.work / "corpora" / data_set / "data"
        return self.data or self.systems[data_set, system].data_folder

    def preparation(self, data_set: str) -> str:
        """The command that makes the data of the small scale."""
        small = load_small_scale(data_set)
        text, data = (self.work / "corpora" / data_set / part for part in ("text", "data"))
        commands = builtin_corpus(small.corpus, text, data, as_arguments(small.preparation))
        return " && ".join(shown([str(part) for part in command]) for command in commands)

    def predecessor(self, data_set: str, system: str, seed: str) -> str | None:
        """The run, below ``work``, that has to be trained before this one, which starts from its best model."""
        configuration = self.systems[data_set, system]
        after = next((row.after for row in self.table.rows if row.configuration == configuration), None)
        return None if after is None else "/".join([*self.table.system_of(after), f"seed_{seed}"])

    def start(self, data_set: str, system: str, seed: str) -> list[str]:
        """How a training is told the model that it goes on from."""
        if (run := self.predecessor(data_set, system, seed)) is None:
            return []
        return ["--finetune-from-model", str(self.work / run / "checkpoints" / "checkpoint_best.pt")]

    @property
    def trials(self) -> list[str]:
        """The values that each system is tried with."""
        return [] if self.table.tuning is None else list(self.table.tuning.values)

    def train_options(self, data_set: str, system: str) -> list[str]:
        """What fairseq-train is told beside the configuration."""
        options = self._small(data_set).train_options(self.systems[data_set, system].model)
        if self.max_update is not None:
            options["max-update"] = self.max_update
        return [*as_arguments(options), *self.table.options]

    def evaluations(self, data_set: str, system: str) -> list[str]:
        """The options of each evaluation, those of one as a line."""
        sets = ("test",) if self.scale == "small" else self.table.measure.sets
        configuration = self.systems[data_set, system]
        variants = dict.fromkeys(row.variant for row in self.table.rows if row.configuration == configuration)
        generate = as_arguments(self._small(data_set).generate)
        return [
            shown(["--subset", name, *generate, *([] if variant is None else [f"--{variant}"])])
            for variant in variants
            for name in sets
        ]

    def _small(self, data_set: str) -> SmallScale:
        return load_small_scale(data_set) if self.scale == "small" else SmallScale("", {}, {}, {}, {})
