"""Beam search over all sentences of a batch and all hypotheses of each at once, as fairseq's generator does it.

It differs in one thing: the longest translation of a sentence depends on that sentence alone, so that a translation
does not depend on what else is in the batch.

Symbols: N sentences, K hypotheses of each, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..errors import InputError
from .graphs import Array, Value

# Beyond these powers of a length are no numbers any more, and log-probabilities say nothing beside the penalty.
LENGTH_PENALTIES = -10.0, 10.0
LENGTH_FACTORS = 0.0, 1000.0
UNKNOWN_PENALTIES = -1000.0, math.inf


@dataclass(frozen=True)
class SearchOptions:
    """How beam search is done; the names in brackets are fairseq-generate's.

    Attributes:
        beam: hypotheses of each sentence (``--beam``).
        length_penalty: above 1 favours longer translations (``--lenpen``).
        no_repeat_ngram_size: of so many tokens no sequence comes twice; 0 for no limit (``--no-repeat-ngram-size``).
        max_len_a, max_len_b: a translation has at most a times as many tokens as its source, end included, and b more.
        min_len: tokens of a translation, the end not included (``--min-len``).
        unknown_penalty: what is taken off the log-probability of an unknown word (``--unkpen``).

    Raises:
        InputError: a number cannot be.
    """

    beam: int = 5
    length_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    max_len_a: float = 1.5
    max_len_b: int = 10
    min_len: int = 1
    unknown_penalty: float = 0.0

    def __post_init__(self) -> None:
        check_whole_numbers(self, beam=1, no_repeat_ngram_size=0, max_len_b=0, min_len=0)
        check_range(self, "length_penalty", LENGTH_PENALTIES)
        check_range(self, "max_len_a", LENGTH_FACTORS)
        check_range(self, "unknown_penalty", UNKNOWN_PENALTIES)
        check_lengths(self.min_len, self.max_len_a, self.max_len_b)

    def limit(self, source_tokens: int, longest: int) -> int:
        """The tokens that a translation may have, its end not counted.

        Args:
            source_tokens: of its source, the end counted.
            longest: that the model takes.
        """
        return min(int(self.max_len_a * source_tokens + self.max_len_b), longest - 1)


def check_whole_numbers(options: object, **least: int) -> None:
    """Raises InputError where a field of options is no whole number, or below the least that it may be."""
    for name, smallest in least.items():
        value = getattr(options, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < smallest:
            raise InputError(f"{name.replace('_', '-')} is {value}: give a whole number from {smallest} on")


def check_range(options: object, name: str, bounds: tuple[float, float]) -> None:
    """Raises InputError where a field of options is no number between two, which may be too."""
    value, (least, most) = getattr(options, name), bounds
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not least <= value <= most:
        end = "on" if most == math.inf else f"to {most:g}"
        raise InputError(f"{name.replace('_', '-')} is {value}: give a number from {least:g} {end}")


def check_lengths(least: int, max_len_a: float, max_len_b: int, longest: float = math.inf) -> None:
    """Raises InputError where a translation has to be longer than it may be.

    Args:
        least: tokens of a translation, its end not counted.
        max_len_a, max_len_b: see :class:`SearchOptions`.
        longest: translation that the model makes, its end counted.
    """
    of_a_word = int(max_len_a * 2 + max_len_b)  # and its end
    if least > of_a_word:
        raise InputError(
            f"min-len is {least}, but a translation of one word has {of_a_word} tokens at most; raise max-len-b"
        )
    if least >= longest:
        raise InputError(f"min-len is {least}, but the model writes no more than {longest - 1:g} tokens; lower it")


class Hypothesis(NamedTuple):
    """A finished translation.

    Attributes:
        tokens: without the end.
        score: the mean log-probability, by the length penalty.
        log_probabilities: of each token and of the end (T + 1,).
        attention: where each was looked for (T + 1, S); None unless it was asked for.
    """

    tokens: list[int]
    score: float
    log_probabilities: Array
    attention: Array | None


class Step(NamedTuple):
    """What a step of a decoder is given.

    Attributes:
        tokens: the last of each hypothesis (N, K).
        rows: the state that each goes on from (N, K).
        position: the steps before.
        memory: of the encoder.
        states: that ``rows`` choose from.
        changed: rows of N K and tokens (M, 2).
        changes: what is added to their log-probabilities (M,).
        candidates: C.
        need_attention: whether it is wanted.
    """

    tokens: Array
    rows: Array
    position: int
    memory: dict[str, Value]
    states: dict[str, Value]
    changed: Array
    changes: Array
    candidates: int
    need_attention: bool


class Chosen(NamedTuple):
    """What a step of a decoder gives.

    Attributes:
        scores: log-probabilities of the best next tokens of each hypothesis (N, K, C), best first.
        tokens: these (N, K, C).
        end_scores: log-probabilities of the end (N, K).
        attention: (N, K, S); None unless it was asked for.
        states: what the next step goes on from, N K rows.
    """

    scores: Array
    tokens: Array
    end_scores: Array
    attention: Array | None
    states: dict[str, Value]


class Decoder(Protocol):
    """What beam search asks of a model, whose symbols these are. What is impossible is never written."""

    padding: int
    end: int
    unknown: int
    impossible: list[int]
    types: int
    longest_target: int

    def encode(self, tokens: Array) -> tuple[dict[str, Value], dict[str, Value]]:
        """Source tokens (N, S), padded on the right -> the memory and the first states, N rows."""

    def choose(self, step: Step) -> Chosen:
        """Makes a step."""

    def keep(self, memory: dict[str, Value], sentences: Array) -> dict[str, Value]:
        """The memory of some of the sentences."""


def search(
    decoder: Decoder, sources: Sequence[Sequence[int]], options: SearchOptions, need_attention: bool = False
) -> list[list[Hypothesis]]:
    """The finished hypotheses of each sentence, best first.

    Args:
        decoder: of the model.
        sources: the tokens of each sentence, its end included; at least one sentence.
        options: how it is done.
        need_attention: whether hypotheses have their attention.
    """
    beam = min(options.beam, decoder.types - 1)
    limits = np.array([options.limit(len(source), decoder.longest_target) for source in sources])
    memory, states = decoder.encode(padded(sources, decoder.padding))
    finished: list[list[Hypothesis]] = [[] for _ in sources]
    sentences = np.arange(len(sources))
    rows = sentences[:, None]
    written = np.full((len(sources), 1, 1), decoder.end)
    scores = np.zeros((len(sources), 1, 0), np.float32)  # summed up to each token
    # Of each step, and in which row of it a hypothesis was: to copy all at each step takes the square of the length.
    attention: list[Array] = []
    paths = np.zeros((len(sources), 1, 0), np.int64)
    is_ignored = np.zeros((len(sources), beam), bool)
    candidates = min(2 * beam, decoder.types)
    step = 0
    while len(sentences):
        count, hypotheses = rows.shape
        changed, changes = _changes(decoder, written, step, options)
        last = np.ascontiguousarray(written[:, :, -1])
        chosen = decoder.choose(Step(last, rows, step, memory, states, changed, changes, candidates, need_attention))
        states = chosen.states
        at_limit = step >= limits[sentences]
        next_scores, next_tokens = chosen.scores, chosen.tokens
        if at_limit.any():
            next_scores, next_tokens = next_scores.copy(), next_tokens.copy()
            next_scores[at_limit], next_tokens[at_limit] = -np.inf, decoder.padding
            next_scores[at_limit, :, 0], next_tokens[at_limit, :, 0] = chosen.end_scores[at_limit], decoder.end
        if step:
            next_scores = next_scores + scores[:, :, -1:]
        width = min(2 * beam, hypotheses * decoder.types - 1)
        best = np.argsort(-next_scores.reshape(count, -1), axis=1, kind="stable")[:, :width]
        of_beam = best // candidates
        best_scores = np.take_along_axis(next_scores.reshape(count, -1), best, 1)
        best_tokens = np.take_along_axis(next_tokens.reshape(count, -1), best, 1)

        if need_attention and chosen.attention is not None:
            attention.append(chosen.attention.reshape(count * hypotheses, -1))
        is_end = (best_tokens == decoder.end) & (best_scores != -np.inf)
        is_end[:, :beam] &= ~is_ignored
        for sentence, candidate in np.argwhere(is_end[:, :beam]):
            of_sentence = finished[sentences[sentence]]
            if len(of_sentence) == beam:
                continue
            row = of_beam[sentence, candidate]
            total = best_scores[sentence, candidate]
            log_probabilities = np.append(scores[sentence, row], total)
            log_probabilities[1:] -= scores[sentence, row]
            seen = None
            if attention:
                path, length = [*paths[sentence, row], sentence * hypotheses + row], len(sources[sentences[sentence]])
                seen = np.stack([latest[place, :length] for latest, place in zip(attention, path, strict=True)])
            score = float(total) / (step + 1) ** options.length_penalty
            tokens = written[sentence, row, 1:].tolist()
            of_sentence.append(Hypothesis(tokens, score, log_probabilities, seen))

        is_left = ~at_limit & np.array([len(finished[sentence]) < beam for sentence in sentences])
        is_inactive = is_end.copy()
        is_inactive[:, :beam] |= is_ignored
        order = is_inactive * width + np.arange(width)
        active = np.argsort(order, axis=1)[is_left, :beam]
        is_ignored = np.take_along_axis(order[is_left], active, 1) >= width
        kept = np.flatnonzero(is_left)
        parents = np.take_along_axis(of_beam[kept], active, 1)
        places = kept[:, None], parents
        added = np.take_along_axis(best_tokens[kept], active, 1)[..., None]
        written = np.concatenate([written[places], added], axis=2)
        scores = np.concatenate([scores[places], np.take_along_axis(best_scores[kept], active, 1)[..., None]], axis=2)
        rows = kept[:, None] * hypotheses + parents
        if attention:
            paths = np.concatenate([paths[places], rows[..., None]], axis=2)
        sentences = sentences[kept]
        if len(kept) < count and len(kept):
            memory = decoder.keep(memory, kept)
        step += 1
    return [sorted(of_sentence, key=lambda hypothesis: -hypothesis.score) for of_sentence in finished]


def padded(sources: Sequence[Sequence[int]], padding: int) -> Array:
    """Sentences as one array (N, S), padded on the right."""
    array = np.full((len(sources), max(map(len, sources))), padding, np.int64)
    for row, source in zip(array, sources, strict=True):
        row[: len(source)] = source
    return array


def _changes(decoder: Decoder, written: Array, step: int, options: SearchOptions) -> tuple[Array, Array]:
    """What is impossible as the next token, or less probable: rows and tokens (M, 2), and by how much (M,)."""
    rows = np.arange(written.shape[0] * written.shape[1])
    impossible = np.tile(np.array(decoder.impossible), len(rows))
    places = [np.stack([rows.repeat(len(decoder.impossible)), impossible], 1)]
    changes = [np.full(len(impossible), -np.inf)]
    if options.unknown_penalty:
        places.append(np.stack([rows, np.full_like(rows, decoder.unknown)], 1))
        changes.append(np.full(len(rows), -options.unknown_penalty))
    if step < options.min_len:
        places.append(np.stack([rows, np.full_like(rows, decoder.end)], 1))
        changes.append(np.full(len(rows), -np.inf))
    size = options.no_repeat_ngram_size
    if size and step >= size:
        flat = written[:, :, 1:].reshape(len(rows), step)
        ngrams = np.lib.stride_tricks.sliding_window_view(flat, size, axis=1)
        is_repeated = (ngrams[..., :-1] == flat[:, None, step + 1 - size :]).all(-1)
        places.append(np.stack([np.nonzero(is_repeated)[0], ngrams[..., -1][is_repeated]], 1))
        changes.append(np.full(int(is_repeated.sum()), -np.inf))
    return np.concatenate(places), np.concatenate(changes).astype(np.float32)
