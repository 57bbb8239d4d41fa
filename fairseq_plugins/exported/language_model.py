"""How probable text is, and text that is drawn, by a language model that was exported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..corpora.codec import list_of_texts
from ..corpora.dictionary import Dictionary
from ..corpora.running_text import RunningTextPreparation
from ..errors import InputError
from ..symbols import check_symbols
from .folder import ExportedFolder
from .graphs import Array, Graph, Value, as_value

LANGUAGE_MODEL = "language_model"
"""The kind of these models, in the card."""
LEAST_TEMPERATURE = 1e-6
"""Long before it the most probable token is drawn as good as always; not far below it the range of float32 ends."""
WINDOW = 70
"""Tokens that are read at once; no result depends on it."""


class ExportedLanguageModel:
    """A recurrent language model.

    Attributes:
        folder: what was read.
        preparation: how text becomes what the model reads.
        dictionary: of its tokens.
    """

    def __init__(self, folder: ExportedFolder, threads: int | None = None) -> None:
        self.folder = folder
        self.preparation = RunningTextPreparation.load(folder.text)
        self.dictionary = Dictionary.load(folder.text / self.preparation.dictionaries()[0])
        self.preparation.decode(self.preparation.encode(""))  # a tokenizer that is not installed shows now
        self._graph = Graph(folder.path / "language_model.onnx", threads)

    @classmethod
    def load(cls, path: str | Path, threads: int | None = None) -> ExportedLanguageModel:
        """See :func:`fairseq_plugins.exported.load`."""
        return cls(ExportedFolder.read(path, LANGUAGE_MODEL), threads)

    def log_probabilities(self, lines: Sequence[str]) -> list[list[float]]:
        """Of each token of each line, and of its end, the natural logarithm of its probability after all before it.

        Raises:
            TypeError: ``lines`` is one text, or one of them is no text.
            InputError: there is nothing, or a symbol of fairseq's own, or a character that cannot be a token.
        """
        numbers = [self._numbers(line, f"line {number}") for number, line in enumerate(list_of_texts("read", lines), 1)]
        if not numbers:
            raise InputError("there is no text: give at least one line")
        tokens = [token for line in numbers for token in line]
        before = np.array([[Dictionary.end, *tokens[:-1]]])
        states, values = self._start(), []
        for first in range(0, len(tokens), WINDOW):
            window = tokens[first : first + WINDOW]
            scores, states = self._read(before[:, first : first + WINDOW], states)
            values.append(scores[0, np.arange(len(window)), window])
        ends = np.cumsum([len(line) for line in numbers])[:-1]
        return [line.tolist() for line in np.split(np.concatenate(values), ends)]

    def perplexity(self, lines: Sequence[str]) -> float:
        """e to the mean loss of a text's tokens, the ends of its lines among them. Raises what
        :meth:`log_probabilities` does."""
        values = [value for line in self.log_probabilities(lines) for value in line]
        return math.exp(-sum(values) / len(values))

    def sample(
        self, tokens: int, seed: int, prompt: str = "", temperature: float = 1.0, top_k: int | None = None
    ) -> list[str]:
        """Draws lines of text; the last one may be cut off.

        Args:
            tokens: how many, the lines' ends among them.
            seed: the same one draws the same text.
            prompt: what is before them; it is given back at their head.
            temperature: below 1 the probable becomes more probable.
            top_k: draws from that many most probable tokens alone; None for all.

        Raises:
            InputError: a number that cannot be, or a prompt that cannot be read.
        """
        if (
            tokens < 1
            or seed < 0
            or not LEAST_TEMPERATURE <= temperature < math.inf
            or (top_k is not None and top_k < 1)
        ):
            raise InputError(
                "tokens and top-k are at least 1, the seed is at least 0, and the temperature is at least "
                f"{LEAST_TEMPERATURE}"
            )
        written = self._numbers(prompt, "the prompt")[:-1] if prompt else []
        draw = np.random.default_rng(seed)
        scores, states = self._read(np.array([[Dictionary.end, *written]]), self._start())
        for _ in range(tokens):
            last = scores[0, -1].astype(np.float64) / temperature
            last[[Dictionary.start, Dictionary.unknown, *self.dictionary.impossible]] = -np.inf
            if top_k is not None and top_k < len(last):
                last[last < np.partition(last, -top_k)[-top_k]] = -np.inf
            probabilities = np.exp(last - last.max())
            written.append(int(draw.choice(len(last), p=probabilities / probabilities.sum())))
            scores, states = self._read(np.array([written[-1:]]), states)
        lines: list[list[str]] = [[]]
        for token in written:
            if token == Dictionary.end:
                lines.append([])
            else:
                lines[-1].append(self.dictionary.symbols[token])
        if not lines[-1]:
            lines.pop()
        return [self.preparation.decode(" ".join(line)) for line in lines]

    def _numbers(self, line: str, place: str) -> list[int]:
        """A line's tokens and its end."""
        self.preparation.check(place, line)
        encoded = self.preparation.encode(line)
        check_symbols(place, encoded.split())
        return self.dictionary.encode(encoded)

    def _start(self) -> dict[str, Value]:
        """The states before the first token, which are zero."""
        return {
            name: as_value(np.zeros([1, *map(int, shape[1:])], np.float32))
            for name, shape in self._graph.shapes.items()
            if name != "tokens"
        }

    def _read(self, tokens: Array, states: dict[str, Value]) -> tuple[Array, dict[str, Value]]:
        """Log-probabilities (1, T, V) after each of tokens (1, T), and the states after them."""
        outputs = self._graph.run({"tokens": np.ascontiguousarray(tokens), **states})
        log_probabilities = outputs.pop("log_probabilities").numpy()
        return log_probabilities, {name.replace("next.", "state.", 1): part for name, part in outputs.items()}
