"""Translating word for word: each German form by the gloss that a dictionary would give, in German order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from fairseq_plugins.corpora.builtin import english, german
from fairseq_plugins.corpora.builtin.lexicon import (
    ADJECTIVES,
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
from fairseq_plugins.corpora.builtin.meaning import PERSONS
from fairseq_plugins.corpora.builtin.sentences import all_frames

_FUNCTION_WORDS = """
der the|die the|das the|den the|dem the|des the|denen whom|
ein a|eine a|einen a|einem a|einer a|eines a|kein no|keine no|keinen no|
dieser this|diese this|dieses this|diesen this|diesem this|jede every|jeden every|
mein my|meine my|meinen my|meinem my|meiner my|meines my|dein your|deine your|deinen your|deinem your|deiner your|
sein his|seine his|seinen his|seinem his|seiner his|ihr her|ihre her|ihren her|ihrem her|ihrer her|
unser our|unsere our|unseren our|unserem our|unserer our|unseres our|
ich I|du you|er he|sie she|es it|wir we|mich me|dich you|ihn him|uns us|mir me|dir you|ihm him|ihnen them|sich himself|
in in|im in|ins into|an at|am on|ans to|auf on|zu to|zum to|zur to|nach to|von of|vom of|mit with|aus from|vor ago|
über about|um at|seit for|ab off|weg away|zurück back|
und and|aber but|weil because|obwohl although|dass that|ob whether|wenn when|falls if|während while|nachdem after|
bevor before|deshalb so|als than|nicht not|sehr very|viel much|nur only|gern gladly|gerade right now|
wer who|wen whom|wem whom|warum why|wann when|wo where|
bin am|bist are|ist is|sind are|war was|warst were|waren were|habe have|hast have|hat has|haben have|
hatte had|hattest had|hatten had|werde will|wirst will|wird will|werden will|wurde was|wurden were|
heute today|morgen tomorrow|Morgen morning|gestern yesterday|Abend evening|letzte last|letzten last|letztes last|
nächste next|nächsten next|nächstes next|Tag day|Woche week|Monat month|Jahr year|Sommer summer|Jahre years|
Wochenende weekend|Uhr o'clock|Euro euros|Hause home|Herr Mr|Herrn Mr|
regnet rains|schneit snows
"""
_MODALS = {
    "can": ("can", "can"),
    "could": ("could", "could"),
    "should": ("should", "should"),
    "have to": ("must", "had to"),
    "want to": ("wants to", "wanted to"),
    "be allowed to": ("may", "was allowed to"),
    "would like to": ("would like to", "would like to"),
}


@cache
def glosses() -> dict[str, str]:
    """German word → English; nouns with their capital.

    The first entry for a form wins, and the most usual one stands first: singular before plural, participle before
    present (the corpus tells the past in the perfect).
    """
    table: dict[str, str] = {}

    def add(word: str, gloss: str) -> None:
        table.setdefault(word, gloss)

    for entry in _FUNCTION_WORDS.replace("\n", "").split("|"):
        word, gloss = entry.split(" ", 1)
        add(word, gloss)
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
            add(form, _MODALS[modal.english][modal.past])
    _add_verbs(add)
    for value in range(2, 1000):
        add(german.number(value), english.number(value))
    for value in range(1, 32):
        add(german.ordinal(value), english.ordinal(value))
    return table


def _add_verbs(add: Callable[[str, str], None]) -> None:
    for frame in all_frames():
        verb, translation = frame.german, frame.english
        particle = f" {translation.particle.replace('_', ' ')}" if translation.particle else ""
        add(verb.participle, translation.participle + particle)
        for person in PERSONS:
            form = translation.third_person if person == "3s" else translation.base
            # The particle of a separable verb stands apart in main clauses, and joins the verb in subordinate ones.
            add(verb.particle + german.present(verb, person), form + particle)
            add(german.present(verb, person), form)
        add(verb.particle + verb.infinitive, translation.base + particle)
        if verb.particle:
            add(verb.particle + "zu" + verb.infinitive, f"to {translation.base}{particle}")


def word_for_word(source: str) -> str:
    """Translates a German sentence word by word with the lexicon; a word that it does not know stays as it is."""
    table, words = glosses(), []
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
