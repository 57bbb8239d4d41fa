"""Between which tokens a text had no space, where detokenizers do not know it: typographic quotation marks and
apostrophes, times, links, addresses and amounts of money.

Tokenizers cut a text at all of these. Where two texts have the same tokens (``a/b`` and ``a / b``), nothing is done.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

SPACE = "\0"
"""Stands for a space within what :func:`joined` has joined; no text has it."""

_NAME = r"(?:[^\W_]|[.-])*[^\W_]"  # without what _TOGETHER has between names, so that one way to read a link is left
_TOGETHER = [
    re.compile(pattern)
    for pattern in (
        # Links. A question mark may end a sentence, and & join two links, unless a name and = follow.
        rf"(?<!\S)(?:(?:https?|ftp) : / ?/ ?|(?=www\.)){_NAME}(?: : \d+(?= /|$))?"
        rf"(?: ?(?:[/~_%+@#=] ?|[?&] (?={_NAME} ?=))+{_NAME})*(?: /(?= \W|$))?(?!\S)",
        r"(?<!\S)[\w.+-]+ @ [\w-]+(?:\.[\w-]+)+(?!\S)",
        # Times, scores and verses.
        r"(?<!\S)\d{1,2}(?: : \d{1,2})+(?:am|pm)?(?!\S)",
    )
]
_APOSTROPHES = "'", "’"
_CLOSING = {"„": "“”", "“": "”", "”": "”", "«": "»", "»": "«»", "‚": "‘’", "‘": "’", "‹": "›", "›": "‹›"}
"""Opening mark → those that close it."""
_OPENING_FIRST = "„“«‚‘‹"
_SAME_ON_BOTH_SIDES = {"fi", "sv"}
_INWARD = {"da", "de", "hu"}
"""Languages that write »so«; others with these marks write «so»."""
_STOPS = re.compile(r"[,.?!:;%}\])…]+")
_FRENCH_STOPS = re.compile(r"[,.}\])…]+")
_COMPOUND = re.compile(r"-\w{2,}.*")
"""What goes on with a quoted word: „Spiegel“-Bericht."""
_DECADE = re.compile(r"\d\ds")
_YEARS = re.compile(r"\d\ds?")
"""As in ``gli anni '90``."""
_VOWELS = "aeiou"
_CYRILLIC = {"be", "ru", "uk"}
_WITH_ENDINGS = {"az", "tr"}
"""Languages that have an apostrophe between a name and its ending."""
_ELIDING = {"ca", "fr", "ga", "it", "pt"}
# What may follow an apostrophe without being a word.
_ENDINGS = {
    "ca": {"hi", "ho", "l", "ls", "m", "n", "ns", "s", "t"},
    "de": {"m", "n", "ne", "nem", "nen", "ner", "s"},
    "en": {"cause", "d", "em", "ll", "m", "re", "s", "t", "ve"},
    "nl": {"k", "m", "n", "s", "t"},
}
_SHORTENED = {"it": {"be", "ca", "fa", "mo", "po", "sta", "va"}}
"""Words that end with an apostrophe."""


def joined(tokens: Sequence[str], language: str) -> list[str]:
    """Tokens, those joined between which there was no space.

    Args:
        tokens: not escaped.
        language: as sacremoses calls it.

    Returns:
        fewer tokens; :data:`SPACE` within one is a space that the detokenizer must leave there.
    """
    text = " ".join(tokens)
    for pattern in _TOGETHER:
        text = pattern.sub(lambda found: found[0].replace(" ", ""), text)
    tokens = text.split()
    gaps: dict[int, str] = {}
    for find in (_amounts, _straight_apostrophes, _marks):
        gaps.update(find(tokens, language))
    parts: list[str] = []
    for place, token in enumerate(tokens):
        if place - 1 in gaps:
            parts[-1] += gaps[place - 1] + token
        else:
            parts.append(token)
    return parts


Gaps = Iterator[tuple[int, str]]
"""Places of tokens, and what is between each of them and the next: nothing, or :data:`SPACE`."""


def _amounts(tokens: Sequence[str], language: str) -> Gaps:
    """``10 € a day``: Moses takes every currency for the beginning of an amount."""
    for place in range(1, len(tokens)):
        is_currency = all(unicodedata.category(sign) == "Sc" for sign in tokens[place])
        is_followed = place + 1 < len(tokens) and tokens[place + 1][0].isdigit()
        if is_currency and tokens[place - 1][-1].isdigit() and not is_followed:
            yield place - 1, SPACE


def _straight_apostrophes(tokens: Sequence[str], language: str) -> Gaps:
    """``foto's``: Moses cuts at each in most languages, and takes each for a quotation mark."""
    places = [place for place, token in enumerate(tokens) if token == "'"]
    certain = [place for place in places if _is_apostrophe(tokens, place, language)]
    if language in _WITH_ENDINGS and len(certain) < len(places):
        certain = []  # what looks like an ending may follow a quotation
    others = [place for place in places if place not in certain]
    # One alone is no quotation mark.
    if len(others) == 1 and language != "en" and _is_word(_neighbours(tokens, others[0])[0]):
        certain += others
    for place in certain:
        yield from _gaps_of_apostrophe(tokens, place, language)


def _is_apostrophe(tokens: Sequence[str], place: int, language: str) -> bool:
    """Whether a straight one is most probably no quotation mark, by the words beside it."""
    before, after = _neighbours(tokens, place)
    if "'" in (*tokens[max(place - 2, 0) : place], *tokens[place + 1 : place + 3]):
        return False  # a quoted letter
    if language == "en":
        return bool(_DECADE.fullmatch(after))  # Moses leaves the others at their words
    if not _is_word(before) or not _is_word(after):
        return language == "nl" and not _is_word(before) and after.lower() in _ENDINGS["nl"]
    if before in ("D", "O") and after[0].isupper():
        return True
    if language in _CYRILLIC:
        return before[-1].lower() not in "аеєиіїоуюя" and after[0].lower() in "яюєїёеи"
    if language in _WITH_ENDINGS:
        return (before[0].isupper() or before[0].isdigit()) and after.islower() and len(after) < 7
    is_elided = language in _ELIDING and len(before) == 1 and not _ends_with_vowel(before)
    return is_elided or after.lower() in _ENDINGS.get(language, ()) or before.lower() in _SHORTENED.get(language, ())


def _gaps_of_apostrophe(tokens: Sequence[str], place: int, language: str) -> Gaps:
    before, after = _neighbours(tokens, place)
    is_left, is_right = _sides(before, after, language)
    if is_left:
        yield place - 1, ""
    if is_right:
        yield place, ""
    elif is_left and tokens[place] == "'" and (_is_word(after) or after in ("-", "–")):
        yield place, SPACE  # Moses would take it for an elision


def _sides(before: str, after: str, language: str) -> tuple[bool, bool]:
    """On which sides of an apostrophe there is no space: before it, after it."""
    if not _is_word(before) or not _is_word(after):
        return _is_word(before), _is_word(after) and not _is_word(before)
    if _YEARS.fullmatch(after) and not before[-1].isdigit():
        return False, True
    before, after = before.lower(), after.lower()
    endings = _ENDINGS.get(language, set())
    if language == "nl" and after in endings:
        # foto's, cd's and zo'n, but "in 't" and "'s avonds"
        is_plural = after == "s" and (before[-1] in f"{_VOWELS}y" or not any(letter in before for letter in _VOWELS))
        return (True, True) if is_plural or (before, after) == ("zo", "n") else (False, True)
    if before in ("d", "o") or after in endings:
        return True, True
    if language == "de":
        return True, False
    if language == "en":
        return True, not before.endswith("s")
    if language == "it":
        # dell'acqua has lost the vowel before it; po' has one.
        return True, not _ends_with_vowel(before)
    return True, True


def _marks(tokens: Sequence[str], language: str) -> Gaps:
    """Typographic quotation marks, and the apostrophe that looks like one of them."""
    opened: list[str] = []
    for place, token in enumerate(tokens):
        if token not in _CLOSING and token not in "”»’›":
            continue
        before, after = _neighbours(tokens, place)
        matching = next((mark for mark in reversed(opened) if token in _CLOSING[mark]), None)
        if token == "’" and _is_typographic_apostrophe(before, after, language, matching is not None):
            yield from _gaps_of_apostrophe(tokens, place, language)
        elif matching is None and _opens(tokens, place, language):
            opened.append(token)
            if language != "fr" or token not in "«‹":
                yield from _gaps_after(tokens, place)
                if language in _ELIDING and _is_elided(tokens, place - 1, language):
                    yield place - 1, ""
        else:
            if matching is not None:
                del opened[opened.index(matching) :]
            if language != "fr" or token not in "»›":
                yield from _gaps_before(tokens, place, language)
            if _COMPOUND.fullmatch(after):
                yield place, ""


def _is_elided(tokens: Sequence[str], place: int, language: str) -> bool:
    """Whether a word ends there with the apostrophe that joins it to the next."""
    if place < 0 or not tokens[place].endswith(_APOSTROPHES):
        return False
    word = tokens[place][:-1] or (tokens[place - 1] if place else "")
    return word[-1:].isalpha() and (language == "fr" or not _ends_with_vowel(word))


def _is_typographic_apostrophe(before: str, after: str, language: str, may_close: bool) -> bool:
    if not may_close:
        return True
    if not _is_word(before) or not _is_word(after):
        return False
    return after.lower() in _ENDINGS.get(language, ()) or (language in _ELIDING and len(before) < 3)


def _opens(tokens: Sequence[str], place: int, language: str) -> bool:
    """Whether a quotation mark that closes none opens one."""
    token, (_, after) = tokens[place], _neighbours(tokens, place)
    is_quoted_stop = tokens[place + 2 : place + 3] and tokens[place + 2] in _CLOSING.get(token, "")
    if not after or (_STOPS.fullmatch(after) and not is_quoted_stop):
        return False
    if token in _OPENING_FIRST:
        return True
    if token == "”":
        return language in _SAME_ON_BOTH_SIDES
    other = {"»": "«", "›": "‹"}.get(token)
    return other is not None and (language in _INWARD | _SAME_ON_BOTH_SIDES or other in tokens[place + 1 :])


def _gaps_after(tokens: Sequence[str], place: int) -> Gaps:
    """Of what opens, and of all that opens behind it."""
    while place + 1 < len(tokens):
        yield place, ""
        place += 1
        if not all(sign in "([{¿¡" or unicodedata.category(sign) == "Sc" for sign in tokens[place]):
            return


def _gaps_before(tokens: Sequence[str], place: int, language: str) -> Gaps:
    """Of what closes, and of the stops before it."""
    stops = _FRENCH_STOPS if language == "fr" else _STOPS
    while place > 0:
        yield place - 1, ""
        place -= 1
        if not stops.fullmatch(tokens[place]):
            return


def _neighbours(tokens: Sequence[str], place: int) -> tuple[str, str]:
    """The tokens before and after a place; nothing where there is none."""
    return tokens[place - 1] if place else "", tokens[place + 1] if place + 1 < len(tokens) else ""


def _ends_with_vowel(word: str) -> bool:
    return unicodedata.normalize("NFD", word[-1].lower())[0] in _VOWELS


def _is_word(token: str) -> bool:
    return token[:1].isalnum() or token[-1:].isalnum()
