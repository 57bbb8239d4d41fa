"""The models that are served, their languages, and which of them a request means."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..exported.translation import ExportedTranslationModel
from ..languages import language_code

AUTO = "auto"


class UnservedError(Exception):
    """No model here does what is asked for. The message is one sentence."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model, and what clients call it.

    Attributes:
        name: that no other has.
        source, target: the codes of its languages, or what they are called where they are none (``title``).
        model: that translates.
    """

    name: str
    source: str
    target: str
    model: ExportedTranslationModel

    @classmethod
    def of(cls, name: str, model: ExportedTranslationModel) -> ServedModel:
        """A model under a name."""
        sides = model.preparation.languages
        codes = [language_code(side) or side for side in sides]
        source, target = codes if len(set(codes)) == 2 else sides
        return cls(name, source, target, model)

    def facts(self) -> dict[str, Any]:
        """What clients are told of it."""
        card = self.model.folder.card
        return {
            "name": self.name,
            "source": self.source,
            "target": self.target,
            "lowercase": bool(card.get("is_lowercase")),
            "architectures": card.get("architectures", []),
            "weights": card.get("weights", ""),
            "license": card.get("license", ""),
        }


class ServedModels:
    """All of them; the first of a pair of languages is its default."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = list(models)
        self.sources = list(dict.fromkeys(model.source for model in models))
        self.targets = list(dict.fromkeys(model.target for model in models))

    @classmethod
    def load(cls, folders: Sequence[Path], threads: int | None = None) -> ServedModels:
        """Loads exported models. One is called as its folder, or by the whole path where folders are called the same.

        Args:
            folders: of them.
            threads: that compute; None for one a core.

        Raises:
            InputError: a folder is given twice, or holds no exported model that can be read.
        """
        counts = Counter(folder.resolve() for folder in folders)
        for folder, count in counts.items():
            if count > 1:
                raise InputError(f"{folder}: given twice; a model is served once")
        names = Counter(folder.resolve().name for folder in folders)
        return cls(
            [
                ServedModel.of(
                    folder.resolve().name if names[folder.resolve().name] == 1 else str(folder),
                    ExportedTranslationModel.load(folder, threads),
                )
                for folder in folders
            ]
        )

    def choose(self, source: str, target: str, name: str | None = None) -> ServedModel:
        """The model for a pair of languages, or the one of that name, whose languages they have to be.

        Raises:
            UnservedError: there is none.
        """
        if name is not None and name not in {model.name for model in self.models}:
            raise UnservedError(f"there is no model {name!r}; there are {', '.join(m.name for m in self.models)}")
        for what, code, codes in ("source", source, self.sources), ("target", target, self.targets):
            if _known(code, codes) is None:
                raise UnservedError(f"{what} {code!r} is not supported; there are {', '.join(codes)}")
        pair = _known(source, self.sources), _known(target, self.targets)
        for model in self.models:
            if (model.source, model.target) == pair and name in (None, model.name):
                return model
        pairs = dict.fromkeys(f"{model.source} → {model.target}" for model in self.models)
        what = "this server" if name is None else f"the model {name!r}"
        raise UnservedError(f"{what} does not translate {source} → {target}; there are {', '.join(pairs)}")

    def detect(self, text: str, target: str | None = None, name: str | None = None) -> list[tuple[str, float]]:
        """How probable each language is to be a text's, in percent, the most probable one first.

        All languages that the detector knows compete; those that are listed are sources of models here.

        Args:
            text: any.
            target: that models have to have; None for any.
            name: of the only model that is meant; None for any.
        """
        code = None if target is None else _known(target, self.targets)
        meant = [model for model in self.models if code in (None, model.target) and name in (None, model.name)]
        # Where none is meant, choose() says so.
        sources = list(dict.fromkeys(model.source for model in meant or self.models))
        probabilities = dict(_detector().rank(text))
        rows = [(source, round(100 * float(probabilities.get(source, 0)), 1)) for source in sources]
        return sorted(rows, key=lambda row: -row[1])

    def languages(self) -> list[dict[str, Any]]:
        """LibreTranslate's list; ``models`` is our own addition: those that read a language."""
        return [
            {
                "code": code,
                "name": language_name(code),
                "targets": list(dict.fromkeys(model.target for model in self.models if model.source == code)),
                "models": [model.facts() for model in self.models if model.source == code],
            }
            for code in dict.fromkeys([*self.sources, *self.targets])
        ]


def language_name(code: str) -> str:
    """In English: ``German`` of ``de``; what is no language's code is its own name."""
    if language_code(code) is None:
        return code
    import langcodes

    return langcodes.get(code).display_name()


def _known(code: str, codes: Sequence[str]) -> str | None:
    """The one of the codes that stands for the same language."""
    if code in codes:
        return code
    # Only the language itself, de of de-AT: langcodes keeps all names that it is asked about, and clients make them up.
    language = re.split("[-_]", code)[0]
    short = language_code(language) if len(language) <= 3 else None
    return next((known for known in (language, short) if known in codes), None)


@functools.cache
def _detector() -> Any:
    # It takes a second, and few requests ask.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
