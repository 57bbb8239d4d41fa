"""Draws words and noun phrases, times and places out of the lexicon."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from . import english, german
from .lexicon import (
    ADJECTIVES,
    CITIES,
    CONTRADICTIONS,
    DAY_PARTS,
    FEMALE_NAMES,
    FRAMES,
    FUTURE_TIMES,
    HABITUAL_TIMES,
    MALE_NAMES,
    MONTHS,
    NOUNS,
    PAST_TIMES,
    PLACES,
    SURNAMES,
    TIME_UNITS,
    WEEKDAYS,
    Adjective,
    Frame,
    GermanVerb,
    Noun,
    Phrase,
)
from .meaning import Location, NounPhrase

Item = TypeVar("Item")

LIVING = ("person", "family", "child", "profession", "own", "pet")
"""Kinds of nouns."""

_HOME = Phrase("zu Hause", "at home")
_TO_HOME = Phrase("nach Hause", "home")
_COMPOUND_SHARE = 0.15
_NEAR = ("Küche", "Garten", "Zimmer")


@cache
def _frames_with(flags: tuple[str, ...], without: tuple[str, ...]) -> tuple[Frame, ...]:
    """The frames that have all of some flags and none of others."""
    return tuple(
        frame
        for frame in FRAMES
        if all(flag in frame.flags for flag in flags)
        and not any(flag in frame.flags for flag in without)
        and frame.english_pattern != "swap"
    )


@cache
def _nouns(names: tuple[str, ...]) -> tuple[Noun, ...]:
    """The nouns that are, or are of the kind of, one of ``names``."""
    return tuple(noun for noun in NOUNS.values() if noun.is_a(names))


@cache
def fitting_adjectives(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that may be before a noun; none before *my mother*."""
    if "family" in noun.kinds:
        return ()
    return tuple(
        adjective
        for adjective in ADJECTIVES
        if noun.is_a(adjective.kinds)
        and not any((adjective.german, name) in CONTRADICTIONS for name in (noun.german, *noun.kinds))
    )


class NothingFitsError(Exception):
    """The words that were drawn so far leave nothing to choose from."""


class PhraseSampler:
    """Draws phrases that make sense; a noun or a verb comes up once in a sentence."""

    def __init__(self, generator: random.Random, has_round_numbers: bool = False) -> None:
        self._random = generator
        self._has_round_numbers = has_round_numbers
        self._used: set[str] = set()
        self._used_verbs: set[GermanVerb] = set()

    def _one(self, items: Sequence[Item]) -> Item:
        if not items:
            raise NothingFitsError
        return items[self._random.randrange(len(items))]

    def _word(self, items: Sequence[Item]) -> Item:
        """One of ``items``, words of the lexicon; those that are first come up most, as in a language."""
        if not items:
            raise NothingFitsError
        return items[min(self._random.randrange(len(items)), self._random.randrange(len(items)))]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _number(self, low: int, high: int) -> int:
        """A number; where numbers are round, at most twenty or ten times something, since each is a word."""
        number = self._random.randint(low, high)
        return min(number // 10 * 10, 90) if self._has_round_numbers and number > 20 else number

    def _noun(self, names: tuple[str, ...]) -> Noun:
        fitting = [noun for noun in _nouns(names) if noun.english not in self._used]
        compounds = [noun for noun in fitting if "compound" in noun.kinds]
        simple = [noun for noun in fitting if "compound" not in noun.kinds]
        use_compound = compounds and (not simple or self._chance(_COMPOUND_SHARE))
        noun = self._word(compounds if use_compound else simple)
        self._used.add(noun.english)
        return noun

    def _adjective(self, noun: Noun) -> Adjective | None:
        fitting = fitting_adjectives(noun)
        return self._word(fitting) if fitting else None

    def _proper_name(self) -> NounPhrase:
        gender = self._one(("m", "f"))
        if self._chance(0.7):
            name = self._one(MALE_NAMES if gender == "m" else FEMALE_NAMES)
            phrase = Phrase(name, name)
        else:
            surname = self._one(SURNAMES)
            phrase = Phrase(
                f"{'Herr' if gender == 'm' else 'Frau'} {surname}", f"{'Mr' if gender == 'm' else 'Mrs'} {surname}"
            )
        if phrase.german in self._used:
            return self._proper_name()
        self._used.add(phrase.german)
        return NounPhrase(name=phrase, name_gender=gender)

    def _someone(
        self,
        names: tuple[str, ...] = ("person",),
        subject: NounPhrase | None = None,
        anaphoric: bool = False,
        short: bool = False,
    ) -> NounPhrase:
        """A person or pet. ``subject`` may own it; an ``anaphoric`` one can be taken up by *he*, *she* or *they*."""
        if "person" in names and self._chance(0.2):
            return self._proper_name()
        noun = self._noun(names)
        if anaphoric and noun.gender == "n":
            return self._someone(names, subject, anaphoric, short)
        phrase = NounPhrase(noun=noun)
        if noun.is_a(("family", "own", "pet")) and self._chance(0.95 if noun.is_a(("family",)) else 0.7):
            possessor, gender = self._possessor(subject)
            phrase = replace(phrase, determiner="possessive", possessor=possessor, possessor_gender=gender)
        elif self._chance(0.1) and "family" not in noun.kinds:
            phrase = replace(phrase, determiner="indefinite")
        elif self._chance(0.08) and not noun.is_a(("family", "own")):
            phrase = replace(phrase, determiner="this")
        plural = 0.0 if noun.german in ("Vater", "Mutter", "Chef", "Großvater", "Großmutter") else 0.15
        if phrase.determiner in ("definite", "possessive") and self._chance(plural):
            phrase = replace(phrase, plural=True)
        if not short and self._chance(0.2):
            phrase = replace(phrase, adjective=self._adjective(noun))
        return phrase

    def _possessor(self, subject: NounPhrase | None) -> tuple[str, str]:
        if subject is None or subject.noun is not None and not subject.animate:
            return self._one(("1s", "1s", "1p")), ""
        if subject.person == "3s" and subject.gender == "n":
            return "1s", ""
        if subject.person in ("1s", "2s", "1p"):
            return subject.person, ""
        if self._chance(0.2):
            return "1s", ""
        return subject.person, subject.gender if subject.person == "3s" else ""

    def _speaker(self) -> NounPhrase:
        # "He" beside somebody else would seem to be that person.
        person = self._one(("1s", "1p") if self._used else ("1s", "1p", "3sm", "3sf"))
        return NounPhrase(pronoun=True, number_and_person=person[:2], name_gender=person[2:])

    def _subject(self, frame: Frame, anaphoric: bool = False, short: bool = False) -> NounPhrase:
        if "person" in frame.subjects and not anaphoric and self._chance(0.15):
            return self._speaker()
        if frame.subjects[0] in ("person", "child", "profession", "learner"):
            return self._someone(frame.subjects, anaphoric=anaphoric, short=short)
        return self._thing(frame.subjects, None, definite=True)

    def _thing(
        self, names: tuple[str, ...], subject: NounPhrase | None, definite: bool = False, short: bool = False
    ) -> NounPhrase:
        noun = self._noun(names)
        phrase = NounPhrase(noun=noun)
        draw = self._random.random()
        if "drink" in noun.kinds:
            phrase = replace(phrase, determiner="definite" if definite or draw < 0.3 else "none")
        elif noun.is_a(("town", "building", "outdoors", "room")) and not noun.is_a(("home",)):
            pass
        elif draw < 0.42 or definite:
            phrase = replace(phrase, plural=draw < 0.08)
        elif draw < 0.62:
            several = draw < 0.47 and noun.is_a(("food", "readable", "gift", "clothing", "show", "matter"))
            phrase = replace(phrase, determiner="indefinite", plural=several)
        elif draw < 0.8 and noun.is_a(
            ("lost", "clothing", "vehicle", "device", "furniture", "home", "room", "pet", "gift", "portable", "written")
        ):
            possessor, gender = self._possessor(subject)
            phrase = replace(phrase, determiner="possessive", possessor=possessor, possessor_gender=gender)
        elif draw < 0.86:
            phrase = replace(phrase, determiner="this")
        elif draw < 0.93 and noun.is_a(("vehicle", "device", "clothing", "lost", "home", "readable")) and not short:
            owner = self._someone(("profession", "family", "own"), short=True)
            if owner.noun and not owner.plural and owner.determiner in ("definite", "possessive"):
                phrase = replace(phrase, owner=owner)
        elif noun.is_a(("food", "portable", "readable", "gift", "matter")) and "dish" not in noun.kinds:
            count = self._random.randint(2, 12)
            phrase = replace(phrase, determiner="none", plural=True, count=count)
        if not (short or phrase.owner) and self._chance(0.33):
            phrase = replace(phrase, adjective=self._adjective(noun))
        return phrase

    def _object(self, frame: Frame, subject: NounPhrase, short: bool = False) -> NounPhrase:
        people = tuple(name for name in frame.objects if name in LIVING)
        names = tuple(name for name in frame.objects if name not in LIVING)
        if people and (not names or self._chance(0.5)):
            return self._someone(people, subject, short=short)
        if "vague" in frame.flags:
            noun = self._noun(names)
            return NounPhrase(noun=noun, determiner="indefinite", adjective=self._adjective(noun))
        return self._thing(names, subject, short=short)

    def _past_time(self) -> Phrase:
        draw = self._random.random()
        if draw < 0.45:
            return self._word(PAST_TIMES)
        if draw < 0.65:
            count, unit = self._random.randint(2, 12), self._word(TIME_UNITS)
            if unit.english == "years" and self._chance(0.5):
                count = self._number(13, 40)
            return Phrase(f"vor {german.number(count)} {unit.german}", f"{english.number(count)} {unit.english} ago")
        return self._dated()

    def _future_time(self) -> Phrase:
        draw = self._random.random()
        if draw < 0.5:
            return self._word(FUTURE_TIMES)
        if draw < 0.65:
            count, unit = self._random.randint(2, 12), self._word(TIME_UNITS[:3])
            return Phrase(f"in {german.number(count)} {unit.german}", f"in {english.number(count)} {unit.english}")
        return self._dated()

    def _dated(self) -> Phrase:
        """A weekday, a part of one, a date, a month, or an hour."""
        draw, day = self._random.random(), self._word(WEEKDAYS)
        if draw < 0.3:
            return Phrase(f"am {day.german}", f"on {day.english}")
        if draw < 0.5:
            part = self._one(DAY_PARTS)
            return Phrase(f"am {day.german}{part.german}", f"on {day.english} {part.english}")
        month = self._word(MONTHS)
        if draw < 0.7:
            date = self._random.randint(1, 31 if month.english not in ("April", "June") else 30)
            if self._has_round_numbers and date > 9:
                raise NothingFitsError
            return Phrase(
                f"am {german.ordinal(date)} {month.german}", f"on the {english.ordinal(date)} of {month.english}"
            )
        if draw < 0.8:
            return Phrase(f"im {month.german}", f"in {month.english}")
        hour = self._random.randint(2, 12)
        return Phrase(f"um {german.number(hour)} Uhr", f"at {english.number(hour)} o'clock")

    def _habitual_time(self) -> Phrase:
        if self._chance(0.7):
            return self._word(HABITUAL_TIMES)
        day = self._word(WEEKDAYS)
        return Phrase(f"jeden {day.german}", f"every {day.english}")

    def _location(self, groups: tuple[str, ...]) -> Location | Phrase:
        fitting = [place for place in PLACES if any(group in groups for group in place.groups)]
        if "home" in groups and self._chance(0.3):
            return _HOME
        if "nature" not in groups and "farm" not in groups and "water" not in groups and self._chance(0.15):
            city = self._word(CITIES)
            return Phrase(f"in {city.german}", f"in {city.english}")
        place = self._word(fitting)
        return Location(place=place, phrase=self._place_phrase(place.noun))

    def _place_phrase(self, noun: Noun) -> NounPhrase:
        compounds = [
            other
            for other in NOUNS.values()
            if other.german.endswith(noun.german.lower()) and "compound" in other.kinds
        ]
        named = self._one(compounds) if compounds and self._chance(0.2) else noun
        adjective = self._adjective(noun) if self._chance(0.25) else None
        self._used.add(named.english)
        return NounPhrase(noun=named, adjective=adjective)

    def _direction(self, groups: tuple[str, ...] = (), far: bool = False) -> Location | Phrase:
        """Somewhere to go, of these groups if any are given; ``far`` enough to go by car."""
        draw = 1.0 if groups else self._random.random()
        if draw < 0.15:
            return _TO_HOME
        if draw < 0.35:
            city = self._word(CITIES)
            return Phrase(f"nach {city.german}", f"to {city.english}")
        places = [
            place
            for place in PLACES
            if place.groups != ("water",)
            and place.noun.english not in self._used
            and place.noun.german != "Straße"
            and not (far and place.noun.german in _NEAR)
            and (not groups or any(group in groups for group in place.groups))
        ]
        place = self._word(places)
        return Location(place=place, phrase=self._place_phrase(place.noun), direction=True)

    def _frames(self, *flags: str, without: tuple[str, ...] = ()) -> list[Frame]:
        return [frame for frame in _frames_with(flags, without) if frame.german not in self._used_verbs]
