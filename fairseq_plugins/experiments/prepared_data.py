"""Prepared data, as fairseq's commands are given it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __path__ as package_path
from ..checkpoints import check_dictionaries, stored_options
from ..corpora.pairs import PairsPreparation
from ..corpora.preparation import Preparation
from ..errors import InputError
from ..files import refuse_colon
from .configuration import Configuration

USER_DIR = str(Path(package_path[0]).resolve())


@dataclass(frozen=True)
class PreparedData:
    """A folder that ``fairseq-plugins prepare`` wrote."""

    folder: Path
    preparation: Preparation

    @classmethod
    def load(cls, folder: Path) -> PreparedData:
        """Checks that the folder holds what fairseq needs.

        Raises:
            InputError: it is not prepared, or a dictionary is missing, or there is a colon in its path.
        """
        folder = Path(os.path.abspath(folder))  # checkpoints keep it, and are used from anywhere
        refuse_colon(folder, "the prepared data")
        preparation = Preparation.load(folder)
        for name in preparation.dictionaries():
            if not (folder / name).is_file():
                raise InputError(
                    f"{folder / name}: the dictionary is missing; delete {folder} and prepare the data again"
                )
        return cls(folder, preparation)

    @classmethod
    def of(cls, configuration: Configuration, folder: Path | None = None) -> PreparedData:
        """The data of an experiment.

        Args:
            configuration: the experiment
            folder: in the place of the data that the configuration names

        Raises:
            InputError: it is not prepared.
        """
        if folder is None and not configuration.data_folder.exists():
            heads = configuration.path.with_name("_base.yaml"), configuration.path
            told = next(
                (path for path in heads if path.is_file() and "fairseq-plugins prepare" in path.read_text()), None
            )
            how = f"as the head of {told} says" if told else "by 'fairseq-plugins prepare' (docs/data.md)"
            raise InputError(
                f"{configuration.data_folder}: no such folder; prepare the data {how}, or name another folder by --data"
            )
        return cls.load(folder or configuration.data_folder)

    @property
    def pairs(self) -> PairsPreparation:
        """How pairs of texts were prepared.

        Raises:
            InputError: the data is of another kind.
        """
        if not isinstance(self.preparation, PairsPreparation):
            raise InputError(
                f"{self.folder}: a corpus of the kind '{self.preparation.kind}', "
                f"but what is done here needs pairs of texts"
            )
        return self.preparation

    def verify(self, subset: str) -> None:
        """Compares what is read for a set with the checksums that were taken when the data was prepared.

        Args:
            subset: a split; empty for the dictionaries and models of subwords alone

        Raises:
            InputError: a file is damaged, or not there. ``raw/`` may be deleted.
        """
        names = [name for name in self.preparation.files if self.preparation.of_set(name) in (None, subset)]
        names = [name for name in names if not name.startswith("raw/") or (self.folder / name).is_file()]
        if (name := self.preparation.damaged(self.folder, names)) is not None:
            raise self._damage(name)

    def check_trained_on(self, checkpoint: dict[str, Any], path: str | Path) -> None:
        """Refuses a checkpoint, read from ``path``, that was trained with other dictionaries or on another problem.

        Raises:
            InputError: it was, by what it says of them; of dictionaries by the size of its embeddings where it says
                nothing.
        """
        known = stored_options(checkpoint, "task")
        for name, value in self.preparation.task_options().items():
            trained = known.get(name)
            if str(trained) != str(value):
                raise InputError(
                    f"{self.folder}: of {name} {value}, but {path} was trained with {name} {trained}; give the "
                    f"prepared data of its training"
                )
        dictionaries = [self.folder / name for name in self.preparation.dictionaries()]
        check_dictionaries(checkpoint, str(path), dictionaries, isinstance(self.preparation, PairsPreparation))

    def verify_training(self) -> None:
        """Compares what fairseq-train reads with its checksums.

        Raises:
            InputError: a file is damaged, or not there.
        """
        if (name := self.preparation.damaged(self.folder, self._training_files())) is not None:
            raise self._damage(name)

    def training_checksums(self) -> dict[str, str]:
        """File of what fairseq-train reads → SHA-256. The test sets are not among them."""
        return {name: self.preparation.files[name]["sha256"] for name in self._training_files()}

    def _training_files(self) -> list[str]:
        sets = (None, "train", "valid")
        return [
            name for name in self.preparation.files if name.startswith("bin/") and self.preparation.of_set(name) in sets
        ]

    def _damage(self, name: str) -> InputError:
        return InputError(
            f"{self.folder / name}: missing, or not what was prepared; delete {self.folder} and prepare the data again"
        )

    def arguments(self) -> list[str]:
        """What every fairseq command that reads the data begins with."""
        binarized, *others = self.preparation.fairseq_arguments(self.folder)
        return [binarized, "--user-dir", USER_DIR, *others]
