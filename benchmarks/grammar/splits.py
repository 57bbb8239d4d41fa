"""Training, validation and test sets that share no sentence and no near copy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

Pair = tuple[str, str]
SIZES: Mapping[str, int] = {"train": 12000, "valid": 500, "test": 500}

_TOKEN = re.compile(r"[\w'-]+|[^\w\s]")
# A grammar that yields this many unusable sentences in a row has nothing more to say.
_PATIENCE = 20000


def tokens(sentence: str) -> tuple[str, ...]:
    """The lower-cased words and punctuation marks of a sentence."""
    return tuple(_TOKEN.findall(sentence.lower()))


def _masked(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The sentence once for each position, with that position left open: what differs there alone agrees here."""
    for position in range(len(words)):
        yield (*words[:position], "", *words[position + 1 :])


def split(
    draw: Callable[[], Pair], fits: Callable[[Pair], bool], sizes: Mapping[str, int] | None = None
) -> dict[str, list[Pair]]:
    """Draws pairs until ``train``, ``valid`` and ``test`` have their ``sizes``.

    Every source is unique, and no source of one set differs from one of another by one word (in the same place) alone.
    Held-out sets are drawn first, so that they are a fair sample of what ``draw`` yields and ``fits`` accepts.

    Raises:
        ValueError: the grammar has not so many different sentences.
    """
    sizes = {**SIZES, **(sizes or {})}
    seen: set[tuple[str, ...]] = set()
    patterns: dict[tuple[str, ...], str] = {}
    result: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    for name in ("test", "valid", "train"):
        failures = 0
        while len(result[name]) < sizes[name]:
            pair = draw()
            words = tokens(pair[0])
            if not fits(pair) or words in seen or any(patterns.get(mask, name) != name for mask in _masked(words)):
                failures += 1
                if failures > _PATIENCE:
                    raise ValueError(f"the grammar yields {len(result[name])} pairs for {name}, not {sizes[name]}")
                continue
            failures = 0
            seen.add(words)
            result[name].append(pair)
            if name != "train":
                patterns.update((mask, name) for mask in _masked(words))
    return result
