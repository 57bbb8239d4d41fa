"""The folder of an exported model. All of it is data: reading it runs no code.

==============  =======================================================================================================
``model.json``  what the model is, what it was trained on, its scores, and the checksums of all files
``*.onnx``      the graphs: encoder and step, language_model, or classifier
``text/``       preparation.json, dictionaries and subword models, laid out as in prepared data
==============  =======================================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import sha256, write_json

CARD = "model.json"
FORMAT = 1
"""The version of the folder: raised when its meaning changes."""
TEXT = "text"
"""The folder of what the text goes through."""
_REMEDY = "export the model again"


@dataclass(frozen=True)
class ExportedFolder:
    """A folder that was read.

    Attributes:
        path: of it.
        card: the content of ``model.json``.
    """

    path: Path
    card: Mapping[str, Any]

    @classmethod
    def read(cls, path: str | Path, kind: str | None = None) -> ExportedFolder:
        """Reads a folder and compares its files with their checksums.

        Args:
            path: the folder.
            kind: of model that is needed, such as ``translation``; None for any.

        Raises:
            InputError: it is not there, no exported model or one of another kind, newer than this version, or damaged.
        """
        path = Path(path)
        card, content = path / CARD, _card_of(path)
        version = content["format"]
        if version != FORMAT:
            age = "newer" if version > FORMAT else "older"
            remedy = "install a newer fairseq-plugins" if version > FORMAT else _REMEDY
            raise InputError(f"{card}: of format {version}, {age} than {FORMAT}, which this version reads; {remedy}")
        if kind is not None and content["kind"] != kind:
            raise InputError(f"{path}: a model of the kind '{content['kind']}', not '{kind}'")
        for name, facts in content["files"].items():
            file = path / name
            if not file.resolve().is_relative_to(path.resolve()):
                raise InputError(f"{card}: names {name}, which is not in the folder; {_REMEDY}")
            if not file.is_file():
                raise InputError(f"{file}: missing; {_REMEDY}")
            if sha256(file) != facts.get("sha256"):
                raise InputError(f"{file}: damaged, its checksum is another one; {_REMEDY}")
        return cls(path, content)

    @property
    def text(self) -> Path:
        """Where the preparation of the text lies."""
        return self.path / TEXT

    def damaged(self, name: str) -> InputError:
        """The error that an entry of the card cannot be used."""
        return InputError(f"{self.path / CARD}: '{name}' is missing or damaged; {_REMEDY}")


def is_exported(path: str | Path) -> bool:
    """Whether a folder has what may be the card of an exported model."""
    return (Path(path) / CARD).is_file()


def use_of(folder: Path) -> str | None:
    """What runs the exported model in a folder, for a message; None where there is none."""
    try:
        kind = _card_of(folder)["kind"]
    except (InputError, OSError):
        return None
    if kind == "translation":
        return f"run fairseq-plugins translate {folder}"
    functions = "classify" if kind == "classifier" else "perplexity and sample"
    return f"in Python fairseq_plugins.exported.load('{folder}') has {functions}"


def check_replaceable(folder: Path) -> None:
    """Raises InputError for a folder that is no exported model, or that has files of somebody's own beside it: all of
    it is going to be deleted."""
    try:
        content = _card_of(folder)
    except InputError:
        raise InputError(f"{folder}: is there already, and is no exported model; name another --output") from None
    written = {folder / name for name in (CARD, *content["files"])}
    for path in sorted(folder.rglob("*")):
        if path not in written and (path.is_symlink() or not path.is_dir()):
            raise InputError(f"{path}: not of the exported model, which is replaced as a whole; name another --output")


def _card_of(folder: Path) -> dict[str, Any]:
    """What ``model.json`` says, of whatever format. Raises InputError where it is not there, or no card."""
    card = folder / CARD
    try:
        content = json.loads(card.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{card}: no such file; give a folder that 'fairseq-plugins export' wrote") from None
    except ValueError as error:
        raise InputError(f"{card}: damaged ({error}); {_REMEDY}") from None
    kinds = {"format": int, "kind": str, "files": dict}
    if (
        not isinstance(content, dict)
        or not all(isinstance(content.get(name), kind) for name, kind in kinds.items())
        or not all(isinstance(facts, dict) for facts in content["files"].values())
    ):
        raise InputError(f"{card}: not the card of an exported model; {_REMEDY}")
    return content


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Writes ``model.json`` beside the files that a folder has, in the place of another one."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file != folder / CARD)
    facts = {
        file.relative_to(folder).as_posix(): {"bytes": file.stat().st_size, "sha256": sha256(file)} for file in files
    }
    write_json(folder / CARD, {"format": FORMAT, **card, "files": facts})
