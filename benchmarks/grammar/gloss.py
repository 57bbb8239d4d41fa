"""Translating word for word: each German form by the gloss that a dictionary would give, in German order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from . import english, german
from .lexicon import (
    ADJECTIVES,
    ALL_FRAMES,
    CITIES,
    COMPARATIVES,
    DAY_PARTS,
    FEMALE_NAMES,
    FREQUENCIES,
    MALE_NAMES,
    MANNERS,
    MODALS,
    MONTHS,
    NOUNS,
    STATES,
    SURNAMES,
    TIME_UNITS,
    WEEKDAYS,
)
from .meaning import PERSONS
from .vocabulary import rows


@cache
def glosses() -> dict[str, str]:
    """German word → English; nouns with their capital.

    The first entry for a form wins, and the most usual one is first: singular before plural, participle before
    present (the corpus tells the past in the perfect).
    """
    table: dict[str, str] = {}

    def add(word: str, gloss: str) -> None:
        table.setdefault(word, gloss)

    for row in rows("function_words"):
        add(row["german"], row["english"])
    for phrase in (*CITIES, *COMPARATIVES, *FREQUENCIES, *MANNERS.values(), *WEEKDAYS, *MONTHS, *TIME_UNITS):
        add(phrase.german, phrase.english)
    for state in STATES:
        add(state.words.german, state.words.english)
    for day in WEEKDAYS:
        for part in DAY_PARTS:
            add(day.german + part.german, f"{day.english} {part.english}")
    for name in (*MALE_NAMES, *FEMALE_NAMES, *SURNAMES):
        add(name, name)
    for noun in NOUNS.values():
        for form in (noun.german, noun.oblique, noun.genitive):
            add(form, noun.english)
        if noun.plural:
            add(noun.plural, noun.english_plural)
            add(noun.plural + "n", noun.english_plural)
    for adjective in ADJECTIVES:
        for ending in ("e", "en", "er", "es", "em"):
            add(adjective.stem + ending, adjective.english)
        add(adjective.german, adjective.english)
    for modal in MODALS:
        for form in modal.forms:
            add(form, modal.gloss)
    _add_verbs(add)
    for value in range(2, 1000):
        add(german.number(value), english.number(value))
    for value in range(1, 32):
        add(german.ordinal(value), english.ordinal(value))
    return table


def _add_verbs(add: Callable[[str, str], None]) -> None:
    for frame in ALL_FRAMES:
        verb, translation = frame.german, frame.english
        particle = f" {translation.particle.replace('_', ' ')}" if translation.particle else ""
        add(verb.participle, translation.participle + particle)
        for person in PERSONS:
            form = translation.third_person if person == "3s" else translation.base
            # A separable verb's particle is a word of its own in main clauses, and joins the verb in subordinate ones.
            add(verb.particle + german.present(verb, person), form + particle)
            add(german.present(verb, person), form)
        add(verb.particle + verb.infinitive, translation.base + particle)
        if verb.particle:
            add(verb.particle + "zu" + verb.infinitive, f"to {translation.base}{particle}")


def word_for_word(source: str) -> str:
    """Translates a German sentence word by word with the lexicon; a word that it does not know stays as it is."""
    table = glosses()
    words: list[str] = []
    for word in source.split():
        stripped = word.rstrip(",.?!")
        # Every sentence starts with a capital; elsewhere it marks a noun.
        small = stripped[:1].lower() + stripped[1:]
        gloss = table.get(stripped if words else small) or table.get(small if words else stripped, stripped)
        if words and words[-1] in ("a", "A"):
            words[-1] = english.indefinite_article(gloss)
        words.append(gloss + word[len(stripped) :])
    text = " ".join(words)
    return text[:1].upper() + text[1:]
