"""Prepared data, as fairseq's commands are given it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .. import __path__ as package_path
from ..corpora.pairs import PairsPreparation
from ..corpora.preparation import Preparation
from ..errors import InputError

USER_DIR = str(Path(package_path[0]).resolve())


@dataclass(frozen=True)
class PreparedData:
    """A folder that a ``scripts/prepare_*.sh`` wrote."""

    folder: Path
    preparation: Preparation

    @classmethod
    def load(cls, folder: Path) -> PreparedData:
        """Checks that the folder holds what fairseq needs.

        Raises:
            InputError: it is not prepared, or a dictionary is missing.
        """
        folder = Path(os.path.abspath(folder))  # checkpoints keep it, and are used from anywhere
        preparation = Preparation.load(folder)
        for name in preparation.dictionaries():
            if not (folder / name).is_file():
                raise InputError(
                    f"{folder / name}: the dictionary is missing; delete {folder} and prepare the data again"
                )
        return cls(folder, preparation)

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

    def arguments(self) -> list[str]:
        """What every fairseq command that reads the data begins with."""
        binarized, *others = self.preparation.fairseq_arguments(self.folder)
        return [binarized, "--user-dir", USER_DIR, *others]
