"""Text to text by a translation model that was exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..corpora.codec import list_of_texts
from ..corpora.dictionary import Dictionary
from ..corpora.pairs import PairsPreparation
from ..errors import InputError
from ..symbols import UNKNOWN
from .beam_search import Chosen, Hypothesis, SearchOptions, Step, check_lengths, search
from .folder import ExportedFolder
from .graphs import Array, Graph, Value, rows_of

BATCH_TOKENS = 4000
"""Source tokens in a batch, padding included."""
TRANSLATION = "translation"
"""The kind of these models, in the card."""
_MEMORY, _STATE, _NEXT = "memory.", "state.", "next."


class Translation(NamedTuple):
    """One way to translate a text.

    Attributes:
        text: the translation.
        score: the mean log-probability of its tokens, by the length penalty.
        pieces: subwords.
        log_probabilities: of each piece, and of the end.
        attention: of each piece, and of the end, to each piece of the source and its end; None unless asked for.
        unknown: how many unknown words are in it.
    """

    text: str
    score: float
    pieces: list[str]
    log_probabilities: list[float]
    attention: Array | None
    unknown: int


@dataclass(frozen=True)
class TranslatedText:
    """What became of one text.

    Attributes:
        source: its subwords.
        translations: the best one first; none where the text is empty or too long.
        length: its tokens, the end counted.
        is_too_long: whether the model takes no text of so many.
        limit: the tokens that a translation may have.
    """

    source: list[str]
    translations: list[Translation]
    length: int
    is_too_long: bool
    limit: int

    @property
    def text(self) -> str:
        """The best translation, or nothing."""
        return self.translations[0].text if self.translations else ""

    @property
    def is_cut(self) -> bool:
        """Whether the best translation ends because of its limit."""
        return bool(self.translations) and len(self.translations[0].pieces) >= self.limit


class ExportedTranslationModel:
    """A translation model, or an ensemble; headlines are translations too.

    Attributes:
        folder: what was read.
        preparation: how text becomes what the model reads.
    """

    def __init__(self, folder: ExportedFolder, threads: int | None = None) -> None:
        self.folder = folder
        self.preparation = PairsPreparation.load(folder.text)
        source, target = (folder.text / name for name in self.preparation.dictionaries())
        self.source_dictionary, self.target_dictionary = Dictionary.load(source), Dictionary.load(target)
        self.padding, self.end, self.unknown = Dictionary.padding, Dictionary.end, Dictionary.unknown
        self.impossible, self.types = self.target_dictionary.impossible, len(self.target_dictionary)
        limits = folder.card.get("limits")
        numbers: list[Any] = (
            [limits.get(f"{side}_tokens") for side in ("source", "target")] if isinstance(limits, dict) else []
        )
        if not numbers or not all(isinstance(number, int) and number > 0 for number in numbers):
            raise folder.damaged("limits")
        self.longest_source, self.longest_target = numbers
        # A tokenizer that is not installed shows now, not at the first sentence.
        self.preparation.encode_source("")
        self.preparation.detokenize_target(self.preparation.decode_target(""))
        self._encoder, self._step = (Graph(folder.path / f"{name}.onnx", threads) for name in ("encoder", "step"))
        self._has_position = "position" in self._step.inputs
        self._states = [name for name in self._step.outputs if name.startswith(_NEXT)]

    @classmethod
    def load(cls, path: str | Path, threads: int | None = None) -> ExportedTranslationModel:
        """See :func:`fairseq_plugins.exported.load`."""
        return cls(ExportedFolder.read(path, TRANSLATION), threads)

    def translate(
        self,
        lines: Sequence[str],
        beam: int = 5,
        length_penalty: float = 1.0,
        no_repeat_ngram_size: int = 0,
    ) -> list[str]:
        """Translates text by beam search, as :meth:`.decoding.translation.TranslationModel.translate` does.

        Args:
            lines: source text, a sentence each; what is empty stays empty.
            beam: the number of hypotheses that are kept.
            length_penalty: above 1 favours longer translations.
            no_repeat_ngram_size: of so many subwords no sequence comes twice in a translation; 0 for no limit.

        Raises:
            TypeError: ``lines`` is one text, or one of them is no text.
            InputError: a sentence is longer than the model takes.
        """
        options = SearchOptions(beam, length_penalty, no_repeat_ngram_size)
        translated = self.translations(lines, options)
        for number, line in enumerate(translated, 1):
            if line.is_too_long:
                raise InputError(
                    f"sentence {number} has {line.length:,} tokens, but the model takes {self.longest_source:,}; "
                    "split it"
                )
        return [line.text for line in translated]

    def translations(
        self,
        lines: Sequence[str],
        options: SearchOptions | None = None,
        *,
        count: int = 1,
        need_attention: bool = False,
        replaces_unknown: bool = False,
        progress: Callable[[], object] = lambda: None,
    ) -> list[TranslatedText]:
        """Translates text, and says what else there is to know.

        Args:
            lines: source text, a sentence each; what is empty, or longer than the model takes, has no translation.
            options: of beam search.
            count: translations of each line, at most as many as the beam is wide.
            need_attention: translations have their attention.
            replaces_unknown: an unknown word becomes the source's word that it attends to most.
            progress: called after each sentence.

        Raises:
            TypeError: ``lines`` is one text, or one of them is no text.
            InputError: translations have to be longer than the model makes them.
        """
        options = options or SearchOptions()
        check_lengths(options.min_len, options.max_len_a, options.max_len_b, self.longest_target)
        pieces = [self.preparation.encode_source(line) for line in list_of_texts("translate", lines)]
        numbers = [self.source_dictionary.encode(line) for line in pieces]
        results = [
            TranslatedText(
                line.split(),
                [],
                len(tokens),
                len(tokens) > self.longest_source,
                options.limit(len(tokens), self.longest_target),
            )
            for line, tokens in zip(pieces, numbers, strict=True)
        ]
        places = [place for place, result in enumerate(results) if result.source and not result.is_too_long]
        for batch in batches(places, [len(tokens) for tokens in numbers], BATCH_TOKENS):
            hypotheses_of_batch = search(
                self, [numbers[place] for place in batch], options, need_attention or replaces_unknown
            )
            for place, hypotheses in zip(batch, hypotheses_of_batch, strict=True):
                results[place].translations.extend(
                    self._translation(hypothesis, results[place].source, need_attention, replaces_unknown)
                    for hypothesis in hypotheses[:count]
                )
                progress()
        return results

    def unknown_words(self, line: str) -> list[str]:
        """The words of a source text of which the dictionary lacks a piece."""
        pieces = self.preparation.encode_source(line).split()
        words = self.preparation.join_pieces(self.preparation.source_lang, pieces)
        return [
            word.text
            for word in words
            if any(piece not in self.source_dictionary or piece == UNKNOWN for piece in pieces[word.start : word.stop])
        ]

    def encode(self, tokens: Array) -> tuple[dict[str, Value], dict[str, Value]]:
        """See :class:`.beam_search.Decoder`."""
        encoded = self._encoder.run({"tokens": tokens})
        memory = {
            name: part for name, part in encoded.items() if name in self._step.inputs and name.startswith(_MEMORY)
        }
        return memory, {name: part for name, part in encoded.items() if name.startswith(_STATE)}

    def choose(self, step: Step) -> Chosen:
        """See :class:`.beam_search.Decoder`."""
        feed: dict[str, Any] = {**step.memory, **step.states}
        feed |= {"tokens": step.tokens, "rows": np.ascontiguousarray(step.rows)}
        if self._has_position:
            feed["position"] = np.array(step.position)
        feed |= {"changed": step.changed, "changes": step.changes, "candidates": np.array([step.candidates])}
        wanted = ["scores", "candidate_tokens", "end_scores", *["attention"] * step.need_attention]
        outputs = self._step.run(feed, [*wanted, *self._states])
        return Chosen(
            outputs["scores"].numpy(),
            outputs["candidate_tokens"].numpy(),
            outputs["end_scores"].numpy(),
            outputs["attention"].numpy() if step.need_attention else None,
            {_STATE + name.removeprefix(_NEXT): outputs[name] for name in self._states},
        )

    def keep(self, memory: dict[str, Value], sentences: Array) -> dict[str, Value]:
        """See :class:`.beam_search.Decoder`."""
        return {name: rows_of(part, sentences) for name, part in memory.items()}

    def _translation(
        self, hypothesis: Hypothesis, source: Sequence[str], need_attention: bool, replaces_unknown: bool
    ) -> Translation:
        pieces, unknown = [], 0
        for place, token in enumerate(hypothesis.tokens):
            if token == Dictionary.start:
                continue
            piece = self.target_dictionary.symbols[token]
            if token == self.unknown:
                if replaces_unknown and hypothesis.attention is not None:
                    piece = source[int(hypothesis.attention[place, : len(source)].argmax())]
                unknown += piece == UNKNOWN
            pieces.append(piece)
        tokens = self.preparation.decode_target(" ".join(pieces))
        return Translation(
            self.preparation.detokenize_target(tokens),
            hypothesis.score,
            pieces,
            hypothesis.log_probabilities.tolist(),
            hypothesis.attention if need_attention else None,
            unknown,
        )


def batches(places: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Places of texts of like lengths, of which no more than so many tokens are together, padding included."""
    batch: list[int] = []
    for place in sorted(places, key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
