"""Classes of texts, by a classifier that was exported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from ..corpora.codec import list_of_texts
from ..corpora.dictionary import Dictionary
from ..corpora.labelled_texts import LabelledTextsPreparation
from ..errors import InputError
from .beam_search import padded
from .folder import ExportedFolder
from .graphs import Array, Graph
from .translation import BATCH_TOKENS, batches

CLASSIFIER = "classifier"
"""The kind of these models, in the card."""


class Prediction(NamedTuple):
    """What a text is.

    Attributes:
        label: the most probable class.
        log_probabilities: of each class, by its name.
    """

    label: str
    log_probabilities: dict[str, float]


class ExportedClassifier:
    """A classifier of single texts.

    Attributes:
        folder: what was read.
        preparation: how text becomes what the model reads.
        labels: the classes.
    """

    def __init__(self, folder: ExportedFolder, threads: int | None = None) -> None:
        self.folder = folder
        self.preparation = LabelledTextsPreparation.load(folder.text)
        self.dictionary = Dictionary.load(folder.text / self.preparation.dictionaries()[0])
        self.preparation.encode("")  # a tokenizer that is not installed shows now
        path = folder.path / "classifier.onnx"
        self._graph = Graph(path, threads)
        if {*self._graph.inputs} != {"tokens", "lengths"}:
            raise InputError(f"{path}: another version of fairseq-plugins exported it; export the model again")
        self.labels: list[str] = folder.card.get("labels", [])
        [row] = self._scores([[Dictionary.unknown]])
        if not isinstance(self.labels, list) or [*map(type, self.labels)] != [str] * len(row):
            raise folder.damaged("labels")

    @classmethod
    def load(cls, path: str | Path, threads: int | None = None) -> ExportedClassifier:
        """See :func:`fairseq_plugins.exported.load`."""
        return cls(ExportedFolder.read(path, CLASSIFIER), threads)

    def classify(self, texts: Sequence[str]) -> list[Prediction | None]:
        """Classes of texts; None for a text without words.

        Raises:
            TypeError: ``texts`` is one text, or one of them is no text.
        """
        # Texts have no end to these models.
        numbers = [
            self.dictionary.encode(self.preparation.encode(text))[:-1] for text in list_of_texts("classify", texts)
        ]
        predictions: list[Prediction | None] = [None] * len(numbers)
        places = [place for place, tokens in enumerate(numbers) if tokens]
        for batch in batches(places, [len(tokens) for tokens in numbers], BATCH_TOKENS):
            for place, row in zip(batch, self._scores([numbers[place] for place in batch]), strict=True):
                by_label = dict(zip(self.labels, row.tolist(), strict=True))
                predictions[place] = Prediction(self.labels[int(row.argmax())], by_label)
        return predictions

    def _scores(self, numbers: Sequence[Sequence[int]]) -> Array:
        """Log-probabilities of the classes (texts, classes), of the tokens of each text."""
        feed = {"tokens": padded(numbers, Dictionary.padding), "lengths": np.array([*map(len, numbers)])}
        return cast(Array, self._graph.run(feed)["log_probabilities"].numpy())
