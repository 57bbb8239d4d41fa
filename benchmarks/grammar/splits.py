"""Training, validation and test sets that share no sentence and no near copy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

Pair = tuple[str, str]
SIZES: Mapping[str, int] = {"train": 12000, "valid": 500, "test": 500}

_TOKEN = re.compile(r"[\w'-]+|[^\w\s]")
# A grammar that yields this many unusable sentences in a row has nothing more to say.
_PATIENCE = 20000


def tokens(sentence: str) -> tuple[str, ...]:
    """The lower-cased words and punctuation marks of a sentence."""
    return tuple(_TOKEN.findall(sentence.lower()))


def _key(sentence: str) -> tuple[str, ...]:
    """What makes a sentence another one: its tokens, without the full stop at its end."""
    words = tokens(sentence)
    return words[:-1] if words[-1:] == (".",) else words


def _masked(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The sentence once for each position, with that position left open: what differs there alone agrees here."""
    for position in range(len(words)):
        yield (*words[:position], "", *words[position + 1 :])


def split(
    draw: Callable[[], Pair],
    fits: Callable[[Pair], bool],
    sizes: Mapping[str, int] | None = None,
    excluded: Iterable[str] = (),
    has_near_copies: bool = False,
) -> dict[str, list[Pair]]:
    """Draws pairs until ``train``, ``valid`` and ``test`` have their ``sizes``.

    Every source is unique, whether it ends with a full stop or not, and none is ``excluded``. Unless it
    ``has_near_copies``, no source of one set differs from one of another, or from an excluded one, by one word (in the
    same place) alone. Held-out sets are drawn first, so that they are a fair sample of what ``draw`` yields and
    ``fits`` accepts.

    Raises:
        ValueError: the grammar has not so many different sentences.
    """
    sizes = {**SIZES, **(sizes or {})}
    seen = {_key(sentence) for sentence in excluded}
    patterns = {} if has_near_copies else {mask: "excluded" for words in seen for mask in _masked(words)}
    result: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    for name in ("test", "valid", "train"):
        failures = 0
        while len(result[name]) < sizes[name]:
            pair = draw()
            words = _key(pair[0])
            if not fits(pair) or words in seen or any(patterns.get(mask, name) != name for mask in _masked(words)):
                failures += 1
                if failures > _PATIENCE:
                    raise ValueError(f"the grammar yields {len(result[name])} pairs for {name}, not {sizes[name]}")
                continue
            failures = 0
            seen.add(words)
            result[name].append(pair)
            if name != "train" and not has_near_copies:
                patterns.update((mask, name) for mask in _masked(words))
    return result
