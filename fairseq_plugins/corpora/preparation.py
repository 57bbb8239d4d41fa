"""The record of a preparation, ``preparation.json``: what was done to a corpus, and how to do the same to new text.

Each kind of corpus (pairs of texts, running text, …) has a record of its own, a subclass of :class:`Preparation` in a
file of this package that is named after the kind. What reads prepared data asks the record and need not know the kind.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from fairseq_plugins.errors import InputError
from fairseq_plugins.files import sha256, write_json
from fairseq_plugins.symbols import SPECIAL_SYMBOLS

FORMAT = 1
"""The version of ``preparation.json``: raised when its meaning changes."""
PREPARATION = "preparation.json"

Record = TypeVar("Record", bound="Preparation")

_KINDS: dict[str, type[Preparation]] = {}
_IS_RESULT = "is a result"
_MAPPINGS = ("splits", "files", "dictionary_sizes")


def result(default_factory: type) -> Any:
    """A field of a record that says what came out of the preparation, not what was asked for."""
    return dataclasses.field(default_factory=default_factory, metadata={_IS_RESULT: True}, kw_only=True)


@dataclasses.dataclass(kw_only=True)
class Preparation:
    """Every step that was applied to a corpus: the content of ``preparation.json``, without what is a kind's own."""

    kind: ClassVar[str]
    """The kind's name, under which it is registered."""
    title: ClassVar[str] = "a kind of its own"
    """What a corpus of this kind is called."""
    examples: ClassVar[str] = "examples"
    """What is counted of a split."""
    count: ClassVar[str] = "kept"
    """Under which name ``splits`` has the number of these."""

    metric: str
    """The name of the metric that models of this corpus are scored by."""
    origin: dict[str, str] = result(dict)
    """What the given files were taken from, such as an archive and its checksum."""
    splits: dict[str, dict[str, Any]] = result(dict)
    """train, valid, test, test1, …: the given files' names and checksums, and what was counted; the number of
    references where there are several, and the name that the set goes by where it has one."""
    dictionary_sizes: dict[str, int] = result(dict)
    """What a dictionary is of → the lines of its file."""
    commands: list[str] = result(list)
    """The fairseq commands that were run, in the output folder."""
    versions: dict[str, str] = result(dict)
    files: dict[str, dict[str, Any]] = result(dict)
    """File, relative to the folder → ``bytes`` and ``sha256``."""
    format: int = FORMAT

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            _KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        self._folder: Path | None = None

    def check_counts(self, *names: str) -> None:
        """Raises InputError where a field is there and not positive, or leaves no room for words in a dictionary."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InputError(f"{name.replace('_', '-')} is {value}: it must be positive")
            if name == "dictionary_size" and value is not None and value <= SPECIAL_SYMBOLS:
                raise InputError(f"a dictionary of {value} types has no words: {SPECIAL_SYMBOLS} are fairseq's own")

    @classmethod
    def load(cls: type[Record], folder: str | os.PathLike[str]) -> Record:
        """Reads ``preparation.json`` of an output folder.

        Raises:
            InputError: there is none, it is not one that this version reads, or it is of another kind than this class.
        """
        path = Path(folder) / PREPARATION
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(f"{path}: no such file; give the folder that 'fairseq-plugins prepare' wrote") from None
        except ValueError as error:
            raise InputError(f"{path}: not JSON ({error}); delete {folder} and prepare the corpus again") from None
        is_record = isinstance(content, dict) and all(isinstance(content.get(part), dict) for part in _MAPPINGS)
        if not is_record or "kind" not in content or content.get("format") != FORMAT:
            raise InputError(
                f"{path}: not a preparation of format {FORMAT}; delete {folder} and prepare the corpus again"
            )
        kind = content.pop("kind")
        record = find_kind(kind)
        if record is None:
            raise InputError(
                f"{path}: there is no kind of corpus '{kind}' here; if it is your own, name its file under extensions "
                f"in the configuration, else delete {folder} and prepare the corpus again"
            )
        if not issubclass(record, cls):
            raise InputError(f"{path}: a corpus of the kind '{kind}', but this needs one of the kind '{cls.kind}'")
        try:
            preparation = record(**content)
        except TypeError as error:
            raise InputError(f"{path}: {error}; delete {folder} and prepare the corpus again") from None
        preparation._folder = Path(folder)
        return preparation

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes ``preparation.json`` into a folder, which this preparation then belongs to."""
        # What was asked for comes first.
        write_json(Path(folder) / PREPARATION, {**self.choices(), **dataclasses.asdict(self)})
        self._folder = Path(folder)

    def choices(self) -> dict[str, Any]:
        """What was asked for, as JSON can hold it: two preparations with the same choices of the same files agree."""
        values = dataclasses.asdict(self)
        return {"kind": self.kind} | {
            field.name: values[field.name] for field in dataclasses.fields(self) if _IS_RESULT not in field.metadata
        }

    def fairseq_arguments(self, folder: str | os.PathLike[str]) -> list[str]:
        """What every fairseq command that reads this data in ``folder`` begins with."""
        return [str(Path(folder) / "bin")]

    def task_options(self) -> dict[str, Any]:
        """Options of the task that are the data's own, by their names in a checkpoint: a model that was trained with
        others was trained on other data."""
        return {}

    def dictionaries(self) -> list[str]:
        """The files that have to be there for fairseq to read the data, relative to the folder."""
        return []

    def missing(self, folder: str | os.PathLike[str]) -> str | None:
        """The first file in ``folder`` that is not there any more, or not of its size; None where all is well."""
        for name, facts in self.files.items():
            path = Path(folder) / name
            if not path.is_file() or path.stat().st_size != facts["bytes"]:
                return name
        return None

    def damaged(self, folder: str | os.PathLike[str], names: Iterable[str]) -> str | None:
        """The first of the recorded files ``names`` in ``folder`` whose checksum is another one; None where none is."""
        for name in names:
            path = Path(folder) / name
            if not path.is_file() or sha256(path) != self.files[name]["sha256"]:
                return name
        return None

    def of_set(self, name: str) -> str | None:
        """The set (``train``, ``valid``, ``test``, …) that a recorded file is of; None for dictionaries and models."""
        split = Path(name).name.split(".")[0]
        return split if split in {*self.splits, "train", "valid", "test"} else None

    def split_of(self, name: str) -> str:
        """The split (``test1``) that a set's own name (``nist05``) stands for; any other name as it is."""
        return next((split for split, facts in self.splits.items() if facts.get("name") == name), name)

    def file(self, name: str) -> Path:
        """Where a file of the prepared data lies.

        Raises:
            InputError: this preparation was neither loaded nor saved.
        """
        if self._folder is None:
            raise InputError("this preparation belongs to no folder yet: save() or load() it first")
        return self._folder / name


def find_kind(kind: Any) -> type[Preparation] | None:
    """The class of a kind: a registered one, or that in the file of its name."""
    if not isinstance(kind, str):
        return None
    if kind not in _KINDS and kind.isidentifier():
        name = f"{__package__}.{kind}"
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    return _KINDS.get(kind)
