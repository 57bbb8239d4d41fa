"""Random sentence pairs: what is said is drawn from the lexicon, then put into German and into English."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from fairseq_plugins.corpora.builtin import english, german
from fairseq_plugins.corpora.builtin.lexicon import (
    ADJECTIVES,
    CITIES,
    COMPARATIVES,
    DAY_PARTS,
    FEMALE_NAMES,
    FRAMES,
    FREQUENCIES,
    FUTURE_TIMES,
    GERMAN_VERBS,
    HABITUAL_TIMES,
    MALE_NAMES,
    MANNERS,
    MODALS,
    MONTHS,
    NOUNS,
    PAST_TIMES,
    PLACES,
    STATES,
    SURNAMES,
    TIME_UNITS,
    TRANSPORT,
    WEEKDAYS,
    Adjective,
    Frame,
    GermanVerb,
    Noun,
    Phrase,
    State,
    parse_english_verb,
)
from fairseq_plugins.corpora.builtin.meaning import Clause, Location, NounPhrase, Predicate, pronoun_for

Item = TypeVar("Item")
Words = list[str]
Pair = tuple[Words, Words]


def _special(verb: str, translation: str) -> Frame:
    return Frame(GERMAN_VERBS[verb], parse_english_verb(translation), ("person",), (), "", (), (), frozenset())


_BE = _special("sein", "be was been")
_OPINIONS = tuple(
    _special(*pair)
    for pair in (
        ("glauben", "believe"),
        ("wissen", "know knew known"),
        ("sagen", "say said said"),
        ("hoffen", "hope"),
        ("denken", "think thought thought"),
    )
)
_ASK = _special("fragen", "ask")
_KNOW = _OPINIONS[1]
_ATTEMPTS = tuple(
    _special(*pair)
    for pair in (
        ("versuchen", "try"),
        ("versprechen", "promise"),
        ("vergessen", "forget forgot forgotten"),
        ("hoffen", "hope"),
    )
)
_LIVE, _COST, _PAY = (
    _special("wohnen", "live"),
    _special("kosten", "cost cost cost"),
    _special("bezahlen", "pay paid paid"),
)
_NEED, _LIKE = (next(frame for frame in FRAMES if frame.english.base == base) for base in ("need", "like"))

_WEATHER = (Phrase("es regnet", "it rains"), Phrase("es schneit", "it snows"))
_HOME = Phrase("zu Hause", "at home")
_TO_HOME = Phrase("nach Hause", "home")
# Adjectives that would contradict their nouns although the kinds allow them.
_CONTRADICTIONS = {
    ("alt", "child"),
    ("jung", "Großvater"),
    ("jung", "Junge"),
    ("jung", "Großmutter"),
    ("groß", "Vogel"),
    ("schwer", "Lampe"),
    ("alt", "Geschenk"),
    ("neu", "Prüfung"),
    ("klein", "Kinder"),
}
_COMPOUND_SHARE = 0.15
_NEAR = ("Küche", "Garten", "Zimmer")
_LIVING = ("person", "family", "child", "profession", "own", "pet")


def all_frames() -> tuple[Frame, ...]:
    """Every verb meaning of the corpus."""
    return (*FRAMES, _BE, *_OPINIONS, _ASK, *_ATTEMPTS, _LIVE, _COST, _PAY)


@cache
def _nouns(names: tuple[str, ...]) -> tuple[Noun, ...]:
    """The nouns that are, or are of the kind of, one of ``names``."""
    return tuple(noun for noun in NOUNS.values() if noun.is_a(names))


@cache
def _adjectives(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that may stand before a noun; none before *my mother*."""
    if "family" in noun.kinds:
        return ()
    return tuple(
        adjective
        for adjective in ADJECTIVES
        if noun.is_a(adjective.kinds)
        and not any((adjective.german, name) in _CONTRADICTIONS for name in (noun.german, *noun.kinds))
    )


class _NothingFits(Exception):
    """The words that were drawn so far leave nothing to choose from."""


class Sampler:
    """Draws sentence pairs. The same ``random.Random`` state gives the same sentences on every Python and platform."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator
        self._used: set[str] = set()
        self._used_verbs: set[GermanVerb] = set()
        self._templates: tuple[tuple[Callable[[], Pair], int], ...] = (
            (self._simple, 24),
            (self._because_of_state, 7),
            (self._because_of_object, 5),
            (self._reported, 9),
            (self._whether, 5),
            (self._purpose, 7),
            (self._attempt, 6),
            (self._condition, 5),
            (self._habit_under_condition, 4),
            (self._meanwhile, 4),
            (self._afterwards, 5),
            (self._beforehand, 3),
            (self._contrast, 6),
            (self._consequence, 5),
            (self._question, 8),
            (self._passive, 5),
            (self._price, 3),
            (self._age, 3),
            (self._comparison, 3),
            (self._liking, 4),
            (self._described, 7),
            (self._described_place, 3),
        )

    def sentence(self) -> tuple[str, str]:
        """A German sentence and its English translation, as written text."""
        templates, weights = zip(*self._templates, strict=True)
        while True:
            self._used, self._used_verbs = set(), set()
            try:
                german_words, english_words = self._random.choices(templates, weights)[0]()
            except _NothingFits:
                continue
            if any(
                word == following != "had" for word, following in zip(english_words, english_words[1:], strict=False)
            ):
                # "the lamp that he turned on on Monday": right, but nobody would write it.
                continue
            return written(german_words), written(english_words)

    # Drawing ---------------------------------------------------------------------------------------------------------

    def _one(self, items: Sequence[Item]) -> Item:
        if not items:
            raise _NothingFits
        return items[self._random.randrange(len(items))]

    def _often_early(self, items: Sequence[Item]) -> Item:
        """One of ``items``; those that stand first come up most, as words of a language are not equally frequent."""
        if not items:
            raise _NothingFits
        return items[min(self._random.randrange(len(items)), self._random.randrange(len(items)))]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _noun(self, names: tuple[str, ...]) -> Noun:
        fitting = [noun for noun in _nouns(names) if noun.english not in self._used]
        compounds = [noun for noun in fitting if "compound" in noun.kinds]
        simple = [noun for noun in fitting if "compound" not in noun.kinds]
        use_compound = compounds and (not simple or self._chance(_COMPOUND_SHARE))
        noun = self._often_early(compounds if use_compound else simple)
        self._used.add(noun.english)
        return noun

    def _adjective(self, noun: Noun) -> Adjective | None:
        fitting = _adjectives(noun)
        return self._often_early(fitting) if fitting else None

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
        people = tuple(name for name in frame.objects if name in _LIVING)
        names = tuple(name for name in frame.objects if name not in _LIVING)
        if people and (not names or self._chance(0.5)):
            return self._someone(people, subject, short=short)
        if "vague" in frame.flags:
            noun = self._noun(names)
            return NounPhrase(noun=noun, determiner="indefinite", adjective=self._adjective(noun))
        return self._thing(names, subject, short=short)

    def _past_time(self) -> Phrase:
        draw = self._random.random()
        if draw < 0.45:
            return self._often_early(PAST_TIMES)
        if draw < 0.65:
            count, unit = self._random.randint(2, 12), self._often_early(TIME_UNITS)
            if unit.english == "years" and self._chance(0.5):
                count = self._random.randint(13, 40)
            return Phrase(f"vor {german.number(count)} {unit.german}", f"{english.number(count)} {unit.english} ago")
        return self._dated()

    def _future_time(self) -> Phrase:
        draw = self._random.random()
        if draw < 0.5:
            return self._often_early(FUTURE_TIMES)
        if draw < 0.65:
            count, unit = self._random.randint(2, 12), self._often_early(TIME_UNITS[:3])
            return Phrase(f"in {german.number(count)} {unit.german}", f"in {english.number(count)} {unit.english}")
        return self._dated()

    def _dated(self) -> Phrase:
        """A weekday, a part of one, a date, a month, or an hour."""
        draw, day = self._random.random(), self._often_early(WEEKDAYS)
        if draw < 0.3:
            return Phrase(f"am {day.german}", f"on {day.english}")
        if draw < 0.5:
            part = self._one(DAY_PARTS)
            return Phrase(f"am {day.german}{part.german}", f"on {day.english} {part.english}")
        month = self._often_early(MONTHS)
        if draw < 0.7:
            date = self._random.randint(1, 31 if month.english not in ("April", "June") else 30)
            return Phrase(
                f"am {german.ordinal(date)} {month.german}", f"on the {english.ordinal(date)} of {month.english}"
            )
        if draw < 0.8:
            return Phrase(f"im {month.german}", f"in {month.english}")
        hour = self._random.randint(2, 12)
        return Phrase(f"um {german.number(hour)} Uhr", f"at {english.number(hour)} o'clock")

    def _habitual_time(self) -> Phrase:
        if self._chance(0.7):
            return self._often_early(HABITUAL_TIMES)
        day = self._often_early(WEEKDAYS)
        return Phrase(f"jeden {day.german}", f"every {day.english}")

    def _location(self, groups: tuple[str, ...]) -> Location:
        fitting = [place for place in PLACES if any(group in groups for group in place.groups)]
        if "home" in groups and self._chance(0.3):
            return Location(fixed=_HOME)
        if "nature" not in groups and "farm" not in groups and "water" not in groups and self._chance(0.15):
            city = self._often_early(CITIES)
            return Location(fixed=Phrase(f"in {city.german}", f"in {city.english}"))
        place = self._often_early(fitting)
        return Location(place=place, phrase=self._place_phrase(place.noun))

    def _place_phrase(self, noun: Noun) -> NounPhrase:
        phrase = NounPhrase(noun=noun)
        compounds = [
            other
            for other in NOUNS.values()
            if other.german.endswith(noun.german.lower()) and "compound" in other.kinds
        ]
        if compounds and self._chance(0.2):
            phrase = replace(phrase, noun=self._one(compounds))
        if self._chance(0.25):
            phrase = replace(phrase, adjective=self._adjective(noun))
        self._used.add(phrase.noun.english)
        return phrase

    def _direction(self, groups: tuple[str, ...] = (), far: bool = False) -> Location:
        """Somewhere to go, of these groups if any are given; ``far`` enough to go by car."""
        draw = 1.0 if groups else self._random.random()
        if draw < 0.15:
            return Location(fixed=_TO_HOME, direction=True)
        if draw < 0.35:
            city = self._often_early(CITIES)
            return Location(fixed=Phrase(f"nach {city.german}", f"to {city.english}"), direction=True)
        places = [
            place
            for place in PLACES
            if place.groups != ("water",)
            and place.noun.english not in self._used
            and place.noun.german != "Straße"
            and not (far and place.noun.german in _NEAR)
            and (not groups or any(group in groups for group in place.groups))
        ]
        place = self._often_early(places)
        return Location(place=place, phrase=self._place_phrase(place.noun), direction=True)

    def _frames(self, *flags: str, without: tuple[str, ...] = ()) -> list[Frame]:
        return [
            frame
            for frame in FRAMES
            if all(flag in frame.flags for flag in flags)
            and not any(flag in frame.flags for flag in without)
            and frame.english_pattern != "swap"
            and frame.german not in self._used_verbs
        ]

    # Clauses ---------------------------------------------------------------------------------------------------------

    def _clause(
        self,
        frame: Frame,
        tense: str,
        subject: NounPhrase | None = None,
        *,
        times: bool = True,
        places: bool = True,
        short: bool = False,
        negatable: bool = True,
        anaphoric: bool = False,
        gap: str = "",
        head: NounPhrase | None = None,
    ) -> Clause:
        """A clause of ``frame``; where ``gap`` is given, ``head`` fills that role (and is not said there)."""
        self._used_verbs.add(frame.german)
        if gap == "subject":
            subject = head
        if subject is None:
            subject = self._subject(frame, anaphoric, short)
        clause = Clause(frame, subject, tense, gap=gap)
        if tense == "modal":
            clause = replace(clause, modal=self._often_early(MODALS))
        clause = self._with_objects(clause, head, short)
        if "dir" in frame.pattern:
            clause = replace(clause, direction=self._direction(far=frame.german.infinitive == "fahren"))
            if frame.german.infinitive == "fahren" and self._chance(0.6):
                # "fahren" is driving in one's own car, and going in anything else.
                clause = replace(
                    clause,
                    frame=replace(frame, english=parse_english_verb("go went gone")),
                    vehicle=self._one(TRANSPORT),
                )
        thing = clause.accusative
        if tense == "present" and "state" not in frame.flags and thing and thing.noun and not gap:
            if thing.noun.is_a(("food", "readable", "show", "gift")) and thing.noun.plural:
                # One bakes "rolls" every day, not the same roll.
                generic = NounPhrase(noun=thing.noun, determiner="indefinite", plural=True, adjective=thing.adjective)
                clause = replace(clause, accusative=generic)
        if times:
            clause = self._with_time(clause)
        negate = (
            negatable
            and "placed" not in frame.flags
            and tense not in ("progressive", "pluperfect")
            and clause.frequency is None
        )
        if negate and (tense != "present" or "state" in frame.flags) and not clause.gladly and self._chance(0.17):
            clause = self._negated(clause)
        if not clause.negated:
            if frame.manners and clause.frequency is None and not clause.gladly and self._chance(0.3):
                clause = replace(clause, manner=MANNERS[self._one(frame.manners)])
            placed = "placed" in frame.flags or places and self._chance(0.35)
            if frame.places and gap != "place" and placed:
                clause = replace(clause, location=self._location(frame.places))
        return clause

    def _with_objects(self, clause: Clause, head: NounPhrase | None, short: bool) -> Clause:
        for slot in clause.frame.pattern:
            role = {"acc": "accusative", "dat": "dative"}.get(slot, "prepositional")
            if slot == "dir":
                continue
            if clause.gap == role:
                clause = replace(clause, **{role: head})
            elif role == "dative" and "acc" in clause.frame.pattern:
                if self._chance(0.3) and not (clause.subject and clause.subject.pronoun):
                    receiver = NounPhrase(pronoun=True, number_and_person=self._one(("1s", "1p")))
                else:
                    receiver = self._receiver(clause.subject)
                clause = replace(clause, dative=receiver)
            else:
                with_receiver = "dat" in clause.frame.pattern and role == "accusative"
                clause = replace(clause, **{role: self._object(clause.frame, clause.subject, short or with_receiver)})
        return clause

    def _receiver(self, subject: NounPhrase | None) -> NounPhrase:
        """A person for the dative beside an accusative. A feminine dative after a noun would read as its genitive."""
        while True:
            receiver = self._someone(("person",), subject, short=True)
            if receiver.gender != "f" or receiver.plural or receiver.name or subject is None or subject.pronoun:
                return receiver

    def _with_time(self, clause: Clause) -> Clause:
        tense, flags = clause.tense, clause.frame.flags
        if tense == "present" and "habit" in flags and "state" not in flags:
            draw = self._random.random()
            if draw < 0.2 and clause.frame.pattern != ("dir",) and clause.frame.german.particle != "auf":
                return replace(clause, gladly=True)
            if draw < 0.5:
                return replace(clause, frequency=self._one(FREQUENCIES))
            return replace(clause, time=self._habitual_time())
        if tense in ("perfect", "passive") and self._chance(0.65):
            return replace(clause, time=self._past_time())
        if tense == "future" and self._chance(0.75):
            return replace(clause, time=self._future_time())
        if tense == "modal" and self._chance(0.45):
            return replace(clause, time=self._past_time() if clause.modal.past else self._future_time())
        return clause

    def _negated(self, clause: Clause) -> Clause:
        if "placed" in clause.frame.flags or clause.modal and not clause.modal.negatable:
            return clause
        thing = clause.accusative
        if thing is not None and not thing.pronoun and not thing.name:
            if thing.count is not None or thing.determiner == "none":
                return clause
            if thing.determiner == "indefinite":
                return replace(clause, negated=True, accusative=replace(thing, determiner="negative"))
        for other in (clause.dative, clause.prepositional):
            if other is not None and other.determiner in ("indefinite", "none"):
                return clause
        return replace(clause, negated=True)

    def _event(
        self, subject: NounPhrase | None = None, tenses: tuple[str, ...] = ("perfect",), **options: bool
    ) -> Clause:
        """Any clause in one of ``tenses`` that its verb allows."""
        tense = self._one(tenses)
        if tense == "present":
            frames = self._frames("habit") + self._frames("state")
        elif tense == "progressive":
            frames = self._frames("now")
        elif tense in ("modal", "future"):
            frames = self._frames(without=("luck", "present", "state"))
        else:
            frames = self._frames(without=("present",))
        if subject is not None:
            frames = [frame for frame in frames if self._suits(subject, frame)]
        return self._clause(self._often_early(frames), tense, subject, **options)

    @staticmethod
    def _suits(subject: NounPhrase, frame: Frame) -> bool:
        if subject.noun is None:
            return "person" in frame.subjects
        return subject.noun.is_a(frame.subjects)

    def _relative(self, phrase: NounPhrase) -> NounPhrase:
        """``phrase`` with a relative clause, if one fits."""
        noun = phrase.noun
        if noun is None or phrase.owner or phrase.count or phrase.determiner not in ("definite", "indefinite"):
            return phrase
        choices: list[tuple[Frame, str]] = []
        for frame in self._frames():
            if noun.is_a(("person",)) and "person" in frame.subjects:
                choices.append((frame, "subject"))
            objects = ("person",) if frame.pattern[:1] == ("dat",) and "acc" in frame.pattern else frame.objects
            if frame.pattern[:1] == ("dat",) and noun.is_a(objects):
                choices.append((frame, "dative"))
            if "acc" in frame.pattern and noun.is_a(frame.objects):
                choices += [(frame, "accusative")] * 2
            if frame.pattern and ":" in frame.pattern[0] and noun.is_a(frame.objects):
                choices.append((frame, "prepositional"))
        if not choices:
            return phrase
        frame, gap = self._one(choices)
        if "present" in frame.flags or "state" in frame.flags:
            tense = "present"
        else:
            tense = self._one(("perfect", "perfect", "perfect", "modal")) if "luck" not in frame.flags else "perfect"
        clause = self._clause(
            frame,
            tense,
            gap=gap,
            head=phrase,
            places=False,
            short=True,
            times=self._chance(0.4),
            negatable=phrase.determiner == "definite",
        )
        if self._ambiguous(phrase, clause):
            raise _NothingFits
        return replace(phrase, relative=clause)

    @staticmethod
    def _ambiguous(head: NounPhrase, clause: Clause) -> bool:
        """Whether "die Frau, die Anna gesehen hat" could mean either that saw the other."""
        if clause.gap not in ("subject", "accusative") or not head.noun.is_a(_LIVING):
            return False
        other = clause.accusative if clause.gap == "subject" else clause.subject
        if other is None or not (other.pronoun or other.name or other.noun.is_a(_LIVING)):
            return False
        for phrase in (head, other):
            marked = phrase.noun is not None and phrase.gender == "m" and not phrase.plural
            if marked or phrase.pronoun and (phrase.person != "3s" or phrase.gender == "m"):
                return False
        return head.plural == other.plural

    def _front(self, clause: Clause) -> Clause:
        """Lets something other than the subject open the German sentence."""
        draw = self._random.random()
        if clause.time and draw < 0.45:
            return replace(clause, front="time")
        if clause.location and draw < 0.6:
            return replace(clause, front="place")
        moved = clause.accusative
        if (
            moved is not None
            and draw > 0.85
            and moved.determiner in ("definite", "this", "possessive")
            and not moved.relative
        ):
            # Only where the case shows: a masculine object, or a subject pronoun that has its own accusative.
            masculine = moved.noun is not None and moved.noun.gender == "m" and not moved.plural
            telling = clause.subject.pronoun and clause.subject.person in ("1s", "1p")
            own = moved.determiner == "possessive" and moved.possessor in ("3s", "3p")
            if (masculine or telling) and not own and not clause.frame.german.reflexive:
                return replace(clause, front="accusative")
        return clause

    # Sentences -------------------------------------------------------------------------------------------------------

    def _simple(self) -> Pair:
        clause = self._event(
            tenses=("perfect", "perfect", "perfect", "present", "future", "modal", "modal", "progressive")
        )
        if self._chance(0.3) and not clause.subject.pronoun:
            clause = replace(clause, subject=self._relative(clause.subject))
        elif self._chance(0.3) and not clause.location and not clause.manner and clause.tense != "progressive":
            role = "prepositional" if clause.prepositional else "accusative" if clause.accusative else "dative"
            thing = getattr(clause, role)
            if thing is not None:
                clause = replace(clause, **{role: self._relative(thing)}, front="time" if clause.time else "subject")
                return german.main_clause(clause) + ["."], english.statement(clause) + ["."]
        if not clause.subject.relative:
            clause = self._front(clause)
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _state(self, state: State, subject: NounPhrase, tense: str, negatable: bool = False) -> Clause:
        very = state.words.german != "allein" and self._chance(0.35)
        clause = Clause(_BE, subject, tense, predicate=Predicate(state.words, very=very))
        return replace(clause, negated=True) if negatable and not very and self._chance(0.2) else clause

    def _following(
        self, verbs: tuple[str, ...], tense: str, subject: NounPhrase | None = None, **options: bool
    ) -> Clause:
        """A clause with one of ``verbs``, of a person."""
        frames = [
            frame
            for frame in self._frames(without=("present", "luck") if tense != "perfect" else ("present",))
            if frame.german.particle + frame.german.infinitive in verbs and "person" in frame.subjects
        ]
        return self._clause(self._often_early(frames), tense, subject, negatable=False, **options)

    def _because_of_state(self) -> Pair:
        state, tense = self._often_early(STATES), self._one(("perfect", "perfect", "modal"))
        despite = self._chance(0.35)
        verbs = state.despite if despite else state.because
        clause = self._following(verbs, tense, anaphoric=True, times=tense == "perfect")
        past = clause.tense == "perfect" or clause.modal.past
        reason = self._state(state, pronoun_for(clause.subject), "past" if past else "present")
        conjunction = Phrase("obwohl", "although") if despite else Phrase("weil", "because")
        clause = self._front(clause)
        return (
            [*german.main_clause(clause), ",", conjunction.german, *german.subordinate(reason), "."],
            [*english.statement(clause), conjunction.english, *english.statement(reason), "."],
        )

    def _because_of_object(self) -> Pair:
        bases = ("buy", "look", "repair", "rent", "pick")
        frames = [
            frame
            for frame in FRAMES
            if frame.english.base in bases and frame.pattern == ("acc",) and "food" not in frame.objects
        ]
        clause = self._clause(
            self._often_early(frames),
            self._one(("perfect", "modal", "future")),
            anaphoric=True,
            negatable=False,
            places=False,
        )
        if clause.modal and clause.modal.past:
            clause = replace(clause, tense="perfect", modal=None)
        thing = pronoun_for(clause.accusative)
        reason_frame = _LIKE if clause.accusative.noun is None or clause.accusative.noun.is_a(_LIVING) else _NEED
        reason = Clause(reason_frame, pronoun_for(clause.subject), accusative=thing)
        return (
            [*german.main_clause(clause), ",", "weil", *german.subordinate(reason), "."],
            [*english.statement(clause), "because", *english.statement(reason), "."],
        )

    def _reported(self) -> Pair:
        frame = self._one(_OPINIONS)
        speaker = self._subject(frame, short=True)
        opinion = Clause(frame, speaker)
        tenses = (
            ("future",) if frame.german.infinitive == "hoffen" else ("perfect", "perfect", "present", "future", "modal")
        )
        content = self._event(tenses=tenses)
        return (
            [*german.main_clause(opinion), ",", "dass", *german.subordinate(content), "."],
            [*english.statement(opinion), "that", *english.statement(content), "."],
        )

    def _whether(self) -> Pair:
        content = self._event(tenses=("perfect", "perfect", "modal", "future"), negatable=False)
        if self._chance(0.5):
            asker = Clause(_ASK, self._someone(), tense="present")
        else:
            asker = Clause(_KNOW, self._subject(_KNOW, short=True), negated=True)
        return (
            [*german.main_clause(asker), ",", "ob", *german.subordinate(content), "."],
            [*english.statement(asker), "whether", *english.statement(content), "."],
        )

    def _purpose(self) -> Pair:
        frames = [frame for frame in FRAMES if frame.pattern == ("dir",) and frame.english.base != "run"]
        clause = self._clause(
            self._often_early(frames), self._one(("perfect", "perfect", "future", "modal")), negatable=False
        )
        aims = self._frames(without=("luck", "present", "state"))
        aims = [
            frame
            for frame in aims
            if self._suits(clause.subject, frame)
            and frame.places
            and "water" not in frame.places
            and "placed" not in frame.flags
            and frame.english.base != "wear"
        ]
        aim = self._clause(
            self._often_early(aims), "present", clause.subject, times=False, places=False, negatable=False, short=True
        )
        clause = replace(
            clause, direction=self._direction(aim.frame.places, far=clause.frame.german.infinitive == "fahren")
        )
        clause = self._front(clause)
        return (
            [*german.main_clause(clause), ",", "um", *german.infinitive(aim), "."],
            [*english.statement(clause), *english.infinitive(aim), "."],
        )

    def _attempt(self) -> Pair:
        frame = self._one(_ATTEMPTS)
        hoping = frame.german.infinitive == "hoffen"
        subject = self._subject(frame)
        attempt = Clause(frame, subject, "present" if hoping else "perfect")
        if not hoping and self._chance(0.6):
            attempt = self._front(replace(attempt, time=self._past_time()))
        aims = [frame for frame in self._frames(without=("luck", "present", "state")) if self._suits(subject, frame)]
        content = self._clause(self._often_early(aims), "present", subject, times=False, negatable=False)
        return (
            [*german.main_clause(attempt), ",", *german.infinitive(content), "."],
            [*english.statement(attempt), *english.infinitive(content), "."],
        )

    def _condition(self) -> Pair:
        if self._chance(0.4):
            weather = self._one(_WEATHER)
            word, rest = weather.german.split()
            time = self._one(FUTURE_TIMES[:2])
            condition = ([word, *time.german.split(), rest], [*weather.english.split(), *time.english.split()])
            clause = self._event(tenses=("future", "modal"), times=False)
        else:
            person, cause = self._someone(anaphoric=True), self._often_early(STATES)
            state = self._state(cause, person, "present")
            condition = (german.subordinate(state), english.statement(state))
            clause = self._following(cause.because, self._one(("future", "modal")), pronoun_for(person), times=False)
        if clause.modal and clause.modal.past:
            clause = replace(clause, tense="future", modal=None)
        return (
            ["falls", *condition[0], ",", *german.verb_first(clause), "."],
            ["if", *condition[1], ",", *english.statement(clause), "."],
        )

    def _habit_under_condition(self) -> Pair:
        person, cause = self._someone(anaphoric=True), self._often_early(STATES)
        state = self._state(cause, person, "present")
        clause = self._following(cause.because, "present", pronoun_for(person), times=False)
        clause = replace(clause, frequency=self._one(FREQUENCIES[:3]))
        clause = replace(clause, manner=None)
        return (
            ["wenn", *german.subordinate(state), ",", *german.verb_first(clause), "."],
            ["when", *english.statement(state), ",", *english.statement(clause), "."],
        )

    def _meanwhile(self) -> Pair:
        frames = self._frames("lasting")
        first = self._clause(self._often_early(frames), "perfect", times=False, negatable=False)
        second = self._clause(self._often_early(frames), "perfect", times=False, negatable=False)
        return (
            ["während", *german.subordinate(first), ",", *german.verb_first(second), "."],
            ["while", *english.statement(first), ",", *english.statement(second), "."],
        )

    def _afterwards(self) -> Pair:
        first = self._event(tenses=("pluperfect",), anaphoric=True, times=False, negatable=False)
        second = self._event(pronoun_for(first.subject), ("perfect",), times=False, negatable=False)
        return (
            ["nachdem", *german.subordinate(first), ",", *german.verb_first(second), "."],
            ["after", *english.statement(first), ",", *english.statement(second), "."],
        )

    def _beforehand(self) -> Pair:
        # Nobody forgets or loses a thing "before" something else.
        frames = self._frames(without=("present", "state", "luck"))
        first = self._clause(self._often_early(frames), "perfect", anaphoric=True, times=False, negatable=False)
        second = self._event(pronoun_for(first.subject), ("perfect",), times=False, negatable=False)
        return (
            ["bevor", *german.subordinate(first), ",", *german.verb_first(second), "."],
            ["before", *english.statement(first), ",", *english.statement(second), "."],
        )

    def _contrast(self) -> Pair:
        tense = self._one(("perfect", "future", "progressive"))
        conjunction = Phrase("und", "and") if self._chance(0.5) else Phrase("aber", "but")
        first = self._event(tenses=(tense,), negatable=False, places=False)
        second = self._event(tenses=(tense,), times=False, negatable=False, places=False)
        if conjunction.german == "aber" and tense != "progressive":
            second = self._negated(second)
            second = replace(second, manner=None) if second.negated else second
        return (
            [*german.main_clause(first), ",", conjunction.german, *german.main_clause(second), "."],
            [*english.statement(first), ",", conjunction.english, *english.statement(second), "."],
        )

    def _consequence(self) -> Pair:
        person, cause = self._someone(anaphoric=True), self._often_early(STATES)
        state = self._state(cause, person, "past")
        clause = self._following(
            cause.because, self._one(("perfect", "perfect", "modal")), pronoun_for(person), times=False
        )
        if clause.modal and not clause.modal.past:
            clause = replace(clause, tense="perfect", modal=None)
        return (
            [*german.main_clause(state), ",", "deshalb", *german.verb_first(clause), "."],
            [*english.statement(state), ",", "so", *english.statement(clause), "."],
        )

    def _question(self) -> Pair:
        clause = self._event(
            tenses=("perfect", "perfect", "future", "modal"), negatable=False, places=self._chance(0.6)
        )
        clause = replace(clause, front="question", manner=None)
        if self._chance(0.15):
            you = NounPhrase(pronoun=True, number_and_person="2s")
            if "person" in clause.frame.subjects:
                clause = replace(clause, subject=you)
        draw, pattern = self._random.random(), clause.frame.pattern
        opening: Pair = ([], [])
        if draw < 0.2:
            opening = (["warum"], ["why"])
        elif draw < 0.35:
            clause = replace(clause, time=None)
            opening = (["wann"], ["when"])
        elif draw < 0.5 and not clause.direction:
            clause = replace(clause, location=None)
            opening = (["wo"], ["where"])
        elif draw < 0.65 and clause.frame.subjects == ("person",):
            who = replace(clause, subject=NounPhrase(pronoun=True, name_gender="m"), gap="subject", front="subject")
            if not self._mentions_subject(clause):
                return ["wer", *german.verb_first(who), "?"], ["who", *english.predicate_of(who), "?"]
        elif draw < 0.8 and clause.accusative and clause.accusative.animate and clause.accusative.noun:
            opening, clause = (["wen"], ["whom"]), clause.without("accusative")
        elif draw < 0.85 and pattern == ("dat",):
            opening, clause = (["wem"], ["whom"]), clause.without("dative")
        return [*opening[0], *german.verb_first(clause), "?"], [*opening[1], *english.question(clause), "?"]

    @staticmethod
    def _mentions_subject(clause: Clause) -> bool:
        objects = (clause.accusative, clause.dative, clause.prepositional)
        return any(phrase is not None and phrase.determiner == "possessive" for phrase in objects)

    def _passive(self) -> Pair:
        frames = [
            frame
            for frame in self._frames(without=("luck", "present", "state"))
            if frame.pattern == ("acc",) and not frame.english_pattern and "person" in frame.subjects
        ]
        frame = self._often_early(frames)
        patient = self._object(frame, NounPhrase(pronoun=True, number_and_person="1s"))
        if patient.determiner in ("none", "possessive") or patient.noun is None or patient.plural:
            patient = NounPhrase(noun=self._noun(frame.objects))
        clause = self._with_time(Clause(frame, patient, "passive"))
        if self._chance(0.7):
            clause = replace(clause, agent=self._someone(short=self._chance(0.5)))
        elif frame.places:
            clause = replace(clause, location=self._location(frame.places))
        clause = self._front(clause) if clause.time else clause
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _euros(self, low: int, high: int) -> Phrase:
        amount = self._random.randint(low, high)
        if amount % 100 == 1:
            return self._euros(low, high)
        return Phrase(f"{german.number(amount)} Euro", f"{english.number(amount)} euros")

    def _price(self) -> Pair:
        thing = self._thing(("vehicle", "device", "clothing", "furniture"), None, definite=True)
        price = self._euros(40, 99) if self._chance(0.6) else self._euros(100, 999)
        cost = Clause(_COST, thing)
        payer = Clause(_PAY, self._someone(short=True), "perfect")
        paid = self._euros(20, 39)
        verb, right = german.finite(payer)
        german_words = [
            *german.main_clause(cost),
            *price.german.split(),
            ",",
            "aber",
            *german.noun_phrase(payer.subject, "nom"),
        ]
        german_words += [verb, "nur", *paid.german.split(), *right, "."]
        english_words = [*english.statement(cost), *price.english.split(), ",", "but", *english.statement(payer)]
        return german_words, [*english_words, "only", *paid.english.split(), "."]

    def _age(self) -> Pair:
        person = replace(self._someone(("family", "own", "profession"), anaphoric=True), plural=False)
        years, since, city = self._random.randint(25, 65), self._random.randint(2, 24), self._often_early(CITIES)
        if person.noun and person.noun.german.startswith("Groß"):
            years, since = self._random.randint(61, 99), self._random.randint(11, 40)
        if person.noun and "child" in person.noun.kinds:
            years, since = self._random.randint(13, 25), self._random.randint(2, 12)
        age = Predicate(Phrase(f"{german.number(years)} Jahre alt", f"{english.number(years)} years old"))
        state = Clause(_BE, person, predicate=age)
        living, has = german.present(_LIVE.german, person.person), "has" if person.person == "3s" else "have"
        german_words = [
            *german.main_clause(state),
            "und",
            living,
            "seit",
            german.number(since),
            "Jahren",
            "in",
            city.german,
            ".",
        ]
        lived = ["and", has, "lived", "in", city.english, "for", *english.number(since).split(), "years", "."]
        return german_words, [*english.statement(state), *lived]

    def _comparison(self) -> Pair:
        words = self._one(COMPARATIVES)
        first, second = self._someone(), self._someone(short=True)
        much = Phrase(f"viel {words.german}", f"much {words.english}")
        clause = Clause(_BE, first, self._one(("present", "past")), predicate=Predicate(much, than=second))
        if self._chance(0.5):
            return german.main_clause(clause) + ["."], english.statement(clause) + ["."]
        opinion = Clause(_OPINIONS[0], self._subject(_OPINIONS[0], short=True))
        return (
            [*german.main_clause(opinion), ",", "dass", *german.subordinate(clause), "."],
            [*english.statement(opinion), "that", *english.statement(clause), "."],
        )

    def _liking(self) -> Pair:
        frame = next(frame for frame in FRAMES if frame.english_pattern == "swap")
        thing = self._thing(frame.subjects, None, definite=True)
        person = self._someone()
        tense = self._one(("present", "perfect"))
        if self._chance(0.4):
            thing = self._relative(thing)
        clause = Clause(frame, thing, tense, dative=person, negated=self._chance(0.3))
        if tense == "perfect" and self._chance(0.6):
            # Behind a relative clause the time would seem to belong to that.
            front = "time" if thing.relative or self._chance(0.4) else "subject"
            clause = replace(clause, time=self._past_time(), front=front)
        opposite = replace(clause, subject=person, dative=None, accusative=thing)
        return german.main_clause(clause) + ["."], english.statement(opposite) + ["."]

    def _described(self) -> Pair:
        kinds = ("vehicle", "clothing", "readable", "device", "furniture", "art", "show", "luggage", "person", "dish")
        kind = self._one(kinds)
        head = NounPhrase(noun=self._noun((kind,)), plural=self._chance(0.15))
        adjective = self._adjective(head.noun)
        if adjective is None or adjective.german == "neu":
            raise _NothingFits
        head = self._relative(head)
        words = Phrase(adjective.german, adjective.english)
        predicate = Predicate(words, very=self._chance(0.5))
        clause = Clause(_BE, head, self._one(("present", "present", "past")), predicate=predicate)
        if not predicate.very and self._chance(0.3):
            clause = replace(clause, negated=True)
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _described_place(self) -> Pair:
        frames = [frame for frame in self._frames(without=("present", "state")) if frame.places]
        frame = self._often_early(frames)
        place = self._one([place for place in PLACES if any(group in frame.places for group in place.groups)])
        head = NounPhrase(noun=place.noun)
        adjective = self._adjective(place.noun)
        self._used.add(place.noun.english)
        if adjective is None or adjective.german == "neu":
            raise _NothingFits
        clause = self._clause(frame, "perfect", gap="place", places=False, short=True, negatable=False)
        clause = replace(clause, location=Location(place=place, phrase=head))
        head = replace(head, relative=clause)
        predicate = Predicate(Phrase(adjective.german, adjective.english), very=self._chance(0.7))
        be = Clause(_BE, head, self._one(("present", "past")), predicate=predicate)
        return german.main_clause(be) + ["."], english.statement(be) + ["."]


def written(words: Words) -> str:
    """Words as text: punctuation attached, doubled commas merged, the first letter a capital."""
    merged: Words = []
    for word in words:
        if merged and merged[-1] == "," and word in (",", ".", "?"):
            merged.pop()
        merged.append(word)
    text = ""
    for word in merged:
        text += word if not text or word in (",", ".", "?") else " " + word
    return text[0].upper() + text[1:]
