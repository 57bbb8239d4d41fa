"""A translator with the runtime's interface, for which no model is needed: capitals, and the words in reverse order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.exported.beam_search import SearchOptions
from fairseq_plugins.exported.translation import TranslatedText, Translation
from fairseq_plugins.serving.models import ServedModel, ServedModels

LONGEST = 20
UNKNOWN = "zzz"


class FakeModel:
    """Translates ``a b`` into ``B A``; further translations end with their number.

    ``boom`` is a fault of it, ``refused`` something that cannot be translated. While ``gate`` is shut nothing is done.
    """

    def __init__(self, source: str = "de", target: str = "en", **card: Any) -> None:
        self.preparation = PairsPreparation(source, target, tokenizer="none", bpe="none")
        self.folder = SimpleNamespace(
            card={"is_lowercase": False, "architectures": ["fake"], "weights": "none", "license": "CC0", **card}
        )
        self.batches: list[list[str]] = []
        self.gate, self.started = threading.Event(), threading.Event()
        self.gate.set()

    def translations(
        self,
        lines: Sequence[str],
        options: SearchOptions | None = None,
        *,
        count: int = 1,
        need_attention: bool = False,
    ) -> list[TranslatedText]:
        self.batches.append(list(lines))
        self.started.set()
        assert self.gate.wait(10)
        return [self._translated(line, count, need_attention) for line in lines]

    def unknown_words(self, line: str) -> list[str]:
        return [word for word in line.split() if word == UNKNOWN]

    def _translated(self, line: str, count: int, need_attention: bool) -> TranslatedText:
        words = line.split()
        if "boom" in words:
            raise RuntimeError("boom")
        if "refused" in words:
            raise InputError("this cannot be translated")
        length = len(words) + 1
        if length > LONGEST:
            return TranslatedText(words, [], length, True, LONGEST)
        attention = np.full((length, length), 0.1)
        attention[np.arange(length), [*range(len(words) - 1, -1, -1), len(words)]] = 0.9
        translations = [
            Translation(
                " ".join(pieces), -0.5 - rank, pieces, [-0.5] * length, attention if need_attention else None, 0
            )
            for rank in range(count)
            for pieces in [[word.upper() + str(rank or "") for word in reversed(words)]]
        ]
        return TranslatedText(words, translations, length, False, LONGEST)


def served(*models: FakeModel | ServedModel) -> ServedModels:
    """As the server has them, called ``model-0`` and so on."""
    return ServedModels(
        [
            model if isinstance(model, ServedModel) else ServedModel.of(f"model-{number}", model)  # type: ignore[arg-type]
            for number, model in enumerate(models)
        ]
    )
