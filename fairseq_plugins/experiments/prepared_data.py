"""Prepared data, as fairseq's commands are given it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .. import __path__ as package_path
from ..corpora.parallel import Preparation
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
        for language in preparation.source_lang, preparation.target_lang:
            dictionary = folder / "bin" / f"dict.{language}.txt"
            if not dictionary.is_file():
                raise InputError(f"{dictionary}: the dictionary is missing; delete {folder} and prepare the data again")
        return cls(folder, preparation)

    def arguments(self) -> list[str]:
        """What every fairseq command that reads the data begins with."""
        languages = ["--source-lang", self.preparation.source_lang, "--target-lang", self.preparation.target_lang]
        return [str(self.folder / "bin"), "--user-dir", USER_DIR, *languages]
