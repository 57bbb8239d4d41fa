"""Prepared data, as fairseq's commands are given it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __path__ as package_path
from .. import register
from ..checkpoints import check_dictionaries, stored_options
from ..corpora.labelled_audio import LabelledAudioPreparation
from ..corpora.labelled_texts import LabelledTextsPreparation
from ..corpora.pairs import PairsPreparation
from ..corpora.preparation import Preparation, Record, find_kind
from ..corpora.reading_comprehension import ReadingPreparation
from ..corpora.running_text import RunningTextPreparation
from ..errors import InputError
from ..files import refuse_colon

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

    def prepared_as(self, kind: type[Record]) -> Record:
        """How the data was prepared, as a record of this kind.

        Raises:
            InputError: the data is of another kind.
        """
        if not isinstance(self.preparation, kind):
            raise InputError(
                f"{self.folder}: a corpus of {self.preparation.title}, but what is done here needs {kind.title}"
            )
        return self.preparation

    @property
    def pairs(self) -> PairsPreparation:
        """How pairs of texts were prepared; :meth:`prepared_as`."""
        return self.prepared_as(PairsPreparation)

    @property
    def labelled_texts(self) -> LabelledTextsPreparation:
        """How labelled texts were prepared; :meth:`prepared_as`."""
        return self.prepared_as(LabelledTextsPreparation)

    @property
    def passages(self) -> ReadingPreparation:
        """How passages with questions were prepared; :meth:`prepared_as`."""
        return self.prepared_as(ReadingPreparation)

    @property
    def labelled_audio(self) -> LabelledAudioPreparation:
        """How recordings were prepared; :meth:`prepared_as`."""
        return self.prepared_as(LabelledAudioPreparation)

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
            InputError: the checkpoint's options say so. Where they do not name the dictionaries, the size of its
                embeddings decides.
        """
        stored = stored_options(checkpoint, "task")
        for name, value in self.preparation.task_options().items():
            trained = stored.get(name)
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

    def check_model(self, arch: str, task: str | None) -> None:
        """Looks before a training whether the data is of the kind that is read; models, tasks and kinds of a user's own
        are not refused.

        Args:
            arch: the architecture
            task: fairseq's, where the experiment names one

        Raises:
            InputError: it is of another kind.
        """
        register()
        from fairseq.models import ARCH_MODEL_REGISTRY
        from fairseq.tasks import TASK_REGISTRY

        task_kind = _kind_read_by(TASK_REGISTRY.get(task))
        if self.preparation.title == Preparation.title or (task is not None and task_kind is None):
            return
        kinds = {f"--task {task}": task_kind, f"--arch {arch}": _kind_read_by(ARCH_MODEL_REGISTRY.get(arch))}
        for reader, kind in kinds.items():
            if kind is not None and kind != self.preparation.kind:
                raise InputError(
                    f"{self.folder}: a corpus of {self.preparation.title}, but {reader} reads {title_of(kind)}; name "
                    f"other data by --data, or another configuration"
                )


def title_of(kind: str) -> str:
    """What a corpus of a kind is called."""
    preparation = find_kind(kind)
    return kind if preparation is None else preparation.title


def _kind_read_by(reader: type | None) -> str | None:
    """The kind of data that a model or a task of fairseq's reads; None where nobody knows."""
    from fairseq.models import FairseqEncoderDecoderModel, FairseqLanguageModel
    from fairseq.tasks.language_modeling import LanguageModelingTask
    from fairseq.tasks.translation import TranslationTask

    if reader is None:
        return None
    if issubclass(reader, (FairseqEncoderDecoderModel, TranslationTask)):
        return PairsPreparation.kind
    if issubclass(reader, (FairseqLanguageModel, LanguageModelingTask)):
        return RunningTextPreparation.kind
    return getattr(reader, "data_kind", None)
