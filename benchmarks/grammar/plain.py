"""Plain sentences of at most six words: what somebody types first who tries a translation.

Two of five words are drawn as often as in a language, the others so that each comes up in all its common forms.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from . import english, german
from .clauses import ClauseSampler
from .lexicon import (
    ADJECTIVES,
    CITIES,
    COMPARATIVES,
    FRAMES,
    FREQUENCIES,
    FUTURE_TIMES,
    HABITUAL_TIMES,
    MANNERS,
    MODALS,
    NOUNS,
    PAST_TIMES,
    PLACES,
    SPECIAL_FRAMES,
    STATES,
    TRANSPORT,
    Frame,
    Noun,
    Phrase,
    english_verb,
)
from .meaning import Clause, Location, NounPhrase, Predicate
from .phrases import LIVING, Item, NothingFitsError, fitting_adjectives
from .sentences import Pair, written

MOST_WORDS = 6
_TRIES = 80
_SHARE_OF_USUAL = 0.4
_BE, _HAVE, _ASK, _LIVE, _COST = (SPECIAL_FRAMES[kind][0] for kind in ("be", "have", "ask", "live", "cost"))
_BELIEVE, _KNOW, _SAY, _HOPE, _ = SPECIAL_FRAMES["opinion"]
_TRY, _PROMISE = SPECIAL_FRAMES["attempt"][:2]
_TODAY = Phrase("heute", "today")
_YESTERDAY, _TOMORROW = PAST_TIMES[0], FUTURE_TIMES[0]
_PERSONS = ("1s", "1s", "1s", "2s", "2s", "3sm", "3sf", "1p", "3p")
_SINGULAR, _PLURAL = "3s", "p"
"""Subjects of the third person, and all of the plural."""
_TIMES = {"1s": 2, _SINGULAR: 3, _PLURAL: 2}
_WITHOUT_OBJECT = frozenset(
    "lesen schreiben essen trinken kochen malen singen putzen helfen lachen antworten zuhören nachdenken aufräumen "
    "träumen sprechen verstehen gehen fahren spielen".split()
)
"""Verbs that are said without their objects too."""
_OF_ANIMALS_TOO = frozenset("sehen suchen finden trinken warten zurückkommen schwimmen mögen lieben".split())
"""Verbs that the lexicon has of people, and that are said of animals."""
_OWNED = ("clothing", "vehicle", "device", "furniture", "lost", "pet", "gift", "portable", "readable", "home")
_COUNTED = ("animal", "child", "food", "readable", "gift", "clothing", "lost", "furniture", "device", "vehicle")


def _name(frame: Frame) -> str:
    return frame.german.particle + frame.german.infinitive


def _persons_of(frame: Frame) -> tuple[str, ...]:
    """The persons that a verb is said in: others than the third only if people do it."""
    return ("1s", "2s", _SINGULAR, _PLURAL) if "person" in frame.subjects else (_SINGULAR, _PLURAL)


def _forms(frame: Frame) -> Iterator[tuple[Frame, str, str, int]]:
    """A verb with each tense, and each person of the present, that it is said in; the usual ones several times."""
    for person in _persons_of(frame):
        yield from ((frame, "present", person, time) for time in range(_TIMES.get(person, 1)))
    if "present" in frame.flags:
        return
    yield from ((frame, "perfect", person, 0) for person in (_SINGULAR, ""))
    if not frame.flags & {"luck", "state"} or _name(frame) in ("ankommen", "zurückkommen"):
        yield from ((frame, "modal", "", 0), (frame, "future", "", 0))
    if "now" in frame.flags:
        yield frame, "progressive", "", 0


_FORMS = tuple(form for frame in FRAMES if frame.english_pattern != "swap" for form in _forms(frame))


class PlainSampler(ClauseSampler):
    """Draws plain sentence pairs. The same ``random.Random`` state gives the same sentences everywhere."""

    def __init__(self, generator: random.Random) -> None:
        super().__init__(generator)
        self._said: Counter[object] = Counter()
        self._drawn: list[object] = []
        self._templates: tuple[tuple[Callable[[], Pair], int], ...] = (
            (self._statement, 50),
            (self._question, 24),
            (self._open_question, 14),
            (self._quality, 10),
            (self._whereabouts, 3),
            (self._where, 4),
            (self._possession, 8),
            (self._identity, 3),
            (self._comparison, 2),
            (self._age, 2),
            (self._price, 2),
            (self._home, 3),
            (self._liking, 2),
            (self._opinion, 6),
            (self._passive, 2),
            (self._weather, 1),
        )

    def sentence(self) -> tuple[str, str]:
        """A German sentence and its English translation, as written text; some end without a full stop."""
        templates, weights = zip(*self._templates, strict=True)
        while True:
            self._used, self._used_verbs, self._drawn = set(), set(), []
            try:
                german_words, english_words = self._random.choices(templates, weights)[0]()
            except NothingFitsError:
                continue
            if len(german_words) > MOST_WORDS + 1:  # the punctuation mark is one
                continue
            self._said.update(self._drawn)
            if self._chance(0.12 if german_words[-1] == "." else 0.06):
                german_words, english_words = german_words[:-1], english_words[:-1]
            return written(german_words), written(english_words)

    def _word(self, items: Sequence[Item]) -> Item:
        """One of ``items``: one that comes early, or the one of several that was said most seldom so far."""
        if self._chance(_SHARE_OF_USUAL):
            item = min(super()._word(items), super()._word(items), key=items.index)
        else:
            item = min((self._one(items) for _ in range(_TRIES)), key=self._said.__getitem__)
        self._drawn.append(item)
        return item

    # Noun phrases ------------------------------------------------------------------------------------------

    def _pronoun(self, persons: Sequence[str] = _PERSONS) -> NounPhrase:
        person = self._one(persons)
        return NounPhrase(pronoun=True, number_and_person=person[:2], name_gender=person[2:])

    def _actor(self, names: tuple[str, ...], person: str = "") -> NounPhrase:
        """A subject: a pronoun, a name, two of them, or a noun of one of these kinds.

        Args:
            names: the kinds
            person: ``1s``, ``2s``, or one of :data:`_SINGULAR` and :data:`_PLURAL`; any if it is empty
        """
        if person in ("1s", "2s"):
            return self._pronoun((person,))
        draw = self._random.random()
        if "person" in names and draw < 0.35:
            return self._pronoun({"": _PERSONS, _SINGULAR: ("3sm", "3sf"), _PLURAL: ("1p", "3p")}[person])
        if "person" in names and draw < 0.42 and person != _PLURAL:
            return self._proper_name()
        if "person" in names and draw < 0.45 and person != _SINGULAR:
            pair = [self._proper_name(), self._proper_name()]
            return NounPhrase(
                name=Phrase(*(f" {word} ".join(side) for word, side in zip(("und", "and"), _sides(pair), strict=True))),
                plural=True,
            )
        return self._described(self._noun(names), None, is_plural=None if not person else person == _PLURAL)

    def _described(
        self, noun: Noun, subject: NounPhrase | None, is_subject: bool = True, is_plural: bool | None = None
    ) -> NounPhrase:
        """A noun with an article, a possessive or a number, and sometimes an adjective.

        Args:
            noun: the noun
            subject: whose it may be; None where the noun is the subject itself
            is_subject: whether an indefinite plural would seem to be all there are
            is_plural: None where either will do
        """
        phrase, draw = NounPhrase(noun=noun), self._random.random()
        if is_plural is None:
            _, is_plural = self._word([(noun, False), (noun, bool(noun.plural))])
        if is_plural and not noun.plural:
            raise NothingFitsError
        if "drink" in noun.kinds:
            phrase = replace(phrase, determiner="definite" if draw < 0.35 else "none")
        elif "family" in noun.kinds or noun.is_a(("own",)) and draw < 0.5 or noun.is_a(_OWNED) and draw < 0.22:
            possessor, gender = self._possessor(subject)
            if subject is None:
                owner = self._word(("1s", "1s", "2s", "3sm", "3sf", "1p"))
                possessor, gender = owner[:2], owner[2:]
            if is_plural and noun.german in ("Vater", "Mutter", "Chef"):  # who has several?
                possessor, gender = "1p", ""
            phrase = replace(
                phrase, determiner="possessive", possessor=possessor, possessor_gender=gender, plural=is_plural
            )
        elif is_plural and draw > 0.7 and noun.is_a(_COUNTED):
            phrase = replace(phrase, determiner="none", plural=True, count=self._number(2, 12))
        elif draw < 0.6 or is_plural and is_subject:
            phrase = replace(phrase, plural=is_plural)
        elif draw < 0.9:
            phrase = replace(phrase, determiner="indefinite", plural=is_plural)
        else:
            phrase = replace(phrase, determiner="this", plural=is_plural)
        if self._chance(0.2):
            phrase = replace(phrase, adjective=self._adjective(noun))
        return phrase

    def _with_adjective(self, subject: NounPhrase | None) -> NounPhrase:
        """A noun with an adjective."""
        _, adjective = self._word([("attributive", adjective) for adjective in ADJECTIVES])
        phrase = self._described(self._noun(adjective.kinds), subject, is_subject=False)
        if phrase.noun is None or adjective not in fitting_adjectives(phrase.noun):
            raise NothingFitsError
        return replace(phrase, adjective=adjective)

    def _number(self, low: int, high: int) -> int:
        return self._word([number for number in range(low, high + 1) if number <= 20 or number % 10 == 0])

    def _goal(self, frame: Frame, subject: NounPhrase) -> NounPhrase:
        """An object: a person's pronoun, or a noun."""
        people = tuple(name for name in frame.objects if name in LIVING)
        if "person" in frame.objects and self._chance(0.3):
            phrase = self._pronoun()
            near = {"1s": "1", "1p": "1", "2s": "2"}
            is_same = near.get(phrase.person, phrase.person) == near.get(subject.person, "")
            # "Sie" as an object would be her and them.
            if is_same or phrase.person == "3p" or not subject.pronoun and phrase.person == "3s":
                raise NothingFitsError
            return phrase
        if people and self._chance(0.15) and "person" in frame.objects:
            return self._proper_name()
        return self._described(self._noun(frame.objects), subject, is_subject=False)

    # Clauses -----------------------------------------------------------------------------------------------

    def _plain_clause(self, tenses: Sequence[str] = ()) -> Clause:
        """A clause of a verb with a subject and its objects, in one of ``tenses`` if any are given."""
        frame, tense, person, _ = self._word([form for form in _FORMS if not tenses or form[1] in tenses])
        if frame.german.infinitive == "lieben":
            frame = replace(frame, objects=(*frame.objects, "person"))
        subjects = (*frame.subjects, "animal") if _name(frame) in _OF_ANIMALS_TOO else frame.subjects
        modal = None
        if not person:
            _, person = self._word([(tense, person) for person in _persons_of(frame)])
        if tense == "modal":
            modal, person = self._word([(modal, person) for modal in MODALS for person in _persons_of(frame)])
        subject = self._actor(subjects, person)
        if not set(frame.subjects) & set(LIVING):  # what belongs to somebody
            subject = replace(subject, determiner="definite", count=None)
        clause = Clause(frame, subject, tense, modal=modal)
        if _name(frame) in _WITHOUT_OBJECT and self._chance(0.3):
            return replace(clause, frame=replace(frame, english_pattern=""))
        return self._with_plain_objects(clause)

    def _with_plain_objects(self, clause: Clause) -> Clause:
        frame = clause.frame
        for slot in frame.pattern:
            if slot == "dir":
                clause = self._with_direction(clause)
            elif slot == "dat" and "acc" in frame.pattern:
                receiver = replace(frame, objects=("person",))
                clause = replace(clause, dative=self._goal(receiver, clause.subject))
            else:
                role = {"acc": "accusative", "dat": "dative"}.get(slot, "prepositional")
                clause = clause.with_object(role, self._goal(frame, clause.subject))
        return clause

    def _with_direction(self, clause: Clause) -> Clause:
        is_driving = clause.frame.german.infinitive == "fahren"
        if is_driving and self._chance(0.4):
            # "fahren" is driving in one's own car, and going in anything else.
            frame = replace(clause.frame, english=english_verb("go", "went", "gone"))
            return replace(clause, frame=frame, vehicle=self._word(TRANSPORT))
        return replace(clause, direction=self._direction(far=is_driving))

    def _place_phrase(self, noun: Noun) -> NounPhrase:
        self._used.add(noun.english)
        return NounPhrase(noun=noun)

    def _with_one_more(self, clause: Clause) -> tuple[Clause, Clause]:
        """A clause with a negation, an adverb, a time or a place, or as it is: for German and for English.

        They differ where German says with its present what English says in other tenses.
        """
        frame, tense, draw = clause.frame, clause.tense, self._random.random()
        if "placed" in frame.flags:
            clause = replace(clause, location=self._location(frame.places))
            return clause, clause
        if tense == "progressive" or draw < 0.25:
            return clause, clause
        if draw < 0.42:
            clause = self._denied(clause)
        elif draw < 0.54 and frame.places:
            clause = replace(clause, location=self._location(frame.places))
        elif draw < 0.72 and frame.manners:
            clause = replace(clause, manner=MANNERS[self._word(frame.manners)])
        elif tense == "present" and draw < 0.82 and "state" not in frame.flags:
            clause = replace(clause, frequency=self._word(FREQUENCIES))
        elif tense == "present" and "state" not in frame.flags:
            return self._timed_present(clause)
        elif tense == "perfect":
            clause = replace(clause, time=self._word((_YESTERDAY, _TODAY, *PAST_TIMES)))
        elif tense == "future" or clause.modal and not clause.modal.past:
            clause = replace(clause, time=self._word((_TOMORROW, _TODAY, *FUTURE_TIMES)))
        return clause, clause

    def _timed_present(self, clause: Clause) -> tuple[Clause, Clause]:
        draw = self._random.random()
        if draw < 0.25 and "luck" not in clause.frame.flags and clause.frame.german.particle != "auf":
            clause = replace(clause, gladly=True)
            return clause, clause
        if draw < 0.5:
            clause = replace(clause, time=self._word(HABITUAL_TIMES))
            return clause, clause
        if draw < 0.75 and "luck" not in clause.frame.flags:
            # What goes on today is in the English progressive.
            clause = replace(clause, time=_TODAY)
            return clause, replace(clause, tense="progressive")
        # What is to come may be in the German present.
        clause = replace(clause, time=self._word(FUTURE_TIMES))
        return clause, replace(clause, tense="future")

    def _denied(self, clause: Clause) -> Clause:
        if clause.modal and not clause.modal.negatable or clause.tense == "progressive":
            return clause
        thing = clause.accusative
        if thing and thing.noun and thing.count is None and not thing.adjective:
            if thing.determiner == "none" or thing.determiner == "indefinite":
                return replace(clause, negated=True, accusative=replace(thing, determiner="negative"))
        objects = (thing, clause.dative, clause.prepositional)
        if any(phrase and phrase.determiner in ("indefinite", "none") and phrase.noun for phrase in objects):
            return clause
        return replace(clause, negated=True)

    # Sentences ---------------------------------------------------------------------------------------------

    def _statement(self) -> Pair:
        german_clause, english_clause = self._with_one_more(self._plain_clause())
        if self._chance(0.5):
            fronted = self._front(german_clause)
            german_clause, english_clause = fronted, replace(english_clause, front=fronted.front)
        return german.main_clause(german_clause) + ["."], english.statement(english_clause) + ["."]

    def _question(self) -> Pair:
        clause = self._plain_clause()
        draw = self._random.random()
        if draw < 0.2 and clause.frame.places and "placed" not in clause.frame.flags:
            clause = replace(clause, location=self._location(clause.frame.places))
        elif draw < 0.35 and clause.tense == "present" and "state" not in clause.frame.flags:
            clause = replace(clause, frequency=self._word(FREQUENCIES))
        elif draw < 0.5 and clause.tense == "perfect":
            clause = replace(clause, time=_YESTERDAY)
        if "placed" in clause.frame.flags:
            clause = replace(clause, location=self._location(clause.frame.places))
        clause = replace(clause, front="question")
        return [*german.verb_first(clause), "?"], [*english.question(clause), "?"]

    def _open_question(self) -> Pair:
        clause = self._plain_clause(tenses=("present", "perfect", "modal", "future"))
        question = replace(clause, front="question")
        words = self._word(("who", "what", "where", "why", "when", "whom"))
        opening = {
            "who": Phrase("wer", "who"),
            "what": Phrase("was", "what"),
            "where": Phrase("wo", "where"),
            "why": Phrase("warum", "why"),
            "when": Phrase("wann", "when"),
            "whom": Phrase("wen", "whom"),
        }[words]
        if words == "who":
            someone = NounPhrase(pronoun=True, name_gender="m")
            clause = replace(clause, subject=someone, gap="subject")
            objects = (clause.accusative, clause.dative, clause.prepositional)
            if "person" not in clause.frame.subjects or any(phrase and phrase.possessor for phrase in objects):
                raise NothingFitsError
            return ["wer", *german.verb_first(clause), "?"], ["who", *english.predicate_of(clause), "?"]
        if words in ("what", "whom"):
            thing = clause.accusative
            is_person = "person" in clause.frame.objects
            is_other = "animal" in clause.frame.objects or "pet" in clause.frame.objects
            if not thing or is_person != (words == "whom") or is_other and words == "what":
                raise NothingFitsError
            question = question.without("accusative")
        if words == "where" and (clause.direction or not clause.frame.places):
            raise NothingFitsError
        if words in ("why", "when") and "placed" in clause.frame.flags:
            raise NothingFitsError
        if words == "when" and clause.frame.flags & {"state"}:
            raise NothingFitsError
        return [opening.german, *german.verb_first(question), "?"], [opening.english, *english.question(question), "?"]

    def _of_predicate(self, subject: NounPhrase, predicate: Predicate, negatable: bool = True) -> Pair:
        """*To be* in the present or the past, sometimes negated, sometimes as a question."""
        if subject.determiner == "indefinite" and self._chance(0.7):
            subject = replace(subject, determiner="definite")
        clause = Clause(_BE, subject, "present" if self._chance(0.75) else "past", predicate=predicate)
        if self._chance(0.15):
            clause = replace(clause, front="question")
            return [*german.verb_first(clause), "?"], [*english.question(clause), "?"]
        if negatable and not predicate.very and self._chance(0.18):
            clause = replace(clause, negated=True)
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _quality(self) -> Pair:
        if self._chance(0.35):
            state = self._word(STATES)
            very = state.words.german != "allein" and self._chance(0.2)
            return self._of_predicate(self._actor(("person",)), Predicate(state.words, very=very))
        _, adjective = self._word([("predicate", adjective) for adjective in ADJECTIVES])
        if "person" in adjective.kinds and self._chance(0.4):
            subject = self._actor(("person",))
        else:
            subject = self._described(self._noun(adjective.kinds), None)
        if subject.noun and "drink" in subject.noun.kinds:
            subject = replace(subject, determiner="definite")
        if subject.noun and (adjective not in fitting_adjectives(subject.noun) or subject.determiner == "none"):
            raise NothingFitsError
        if subject.noun is None and "person" not in adjective.kinds:
            raise NothingFitsError
        very = "coloured" not in adjective.kinds and self._chance(0.2)
        predicate = Predicate(Phrase(adjective.german, adjective.english), very=very)
        return self._of_predicate(replace(subject, adjective=None), predicate)

    def _whereabouts(self) -> Pair:
        names = self._one((("person",), ("person",), ("animal",), ("lost", "vehicle", "portable")))
        subject = self._actor(names)
        if subject.determiner == "indefinite" or subject.count:
            subject = replace(subject, determiner="definite", count=None)
        groups = ("home", "town", "work", "eat", "sights", "nature", "farm", "sleep", "fetch")
        place = self._location(groups)
        words = Phrase(" ".join(german.location(place)), " ".join(english.location(place)))
        return self._of_predicate(subject, Predicate(words))

    def _where(self) -> Pair:
        """*Where is the station?*."""
        if self._chance(0.3):
            subject = self._actor(("person",))
        else:
            noun, is_plural = self._word([(noun, plural) for noun in NOUNS.values() for plural in (False, True)])
            subject = self._described(noun, None, is_plural=is_plural)
        if subject.determiner not in ("definite", "possessive", "this"):
            subject = replace(subject, determiner="definite", count=None)
        clause = Clause(_BE, replace(subject, adjective=None), predicate=Predicate(Phrase("", "")))
        return ["wo", *german.verb_first(clause), "?"], ["where", *english.question(clause), "?"]

    def _possession(self) -> Pair:
        names = self._one((("pet", "animal"), ("child", "own"), _OWNED, ("exam", "matter", "event")))
        subject = self._actor(("person",))
        if self._chance(0.5):
            thing = self._described(self._noun(names), subject, is_subject=False)
        else:
            thing = self._with_adjective(subject)
        if thing.determiner in ("definite", "possessive"):
            thing = replace(thing, determiner="indefinite")
        clause = Clause(_HAVE, subject, "present" if self._chance(0.7) else "past", accusative=thing)
        draw = self._random.random()
        if draw < 0.2:
            clause = self._denied(replace(clause, accusative=replace(thing, adjective=None)))
        elif draw < 0.35:
            clause = replace(clause, front="question")
            return [*german.verb_first(clause), "?"], [*english.question(clause), "?"]
        elif draw < 0.42 and thing.noun and not thing.animate:
            clause = replace(clause.without("accusative"), front="question")
            return ["was", *german.verb_first(clause), "?"], ["what", *english.question(clause), "?"]
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _identity(self) -> Pair:
        """*That is my dog*, *Anna is a teacher* and *Who is that?*."""
        draw = self._random.random()
        if draw < 0.1:
            return ["wer", "ist", "das", "?"], ["who", "is", "that", "?"]
        if draw < 0.2:
            return ["was", "ist", "das", "?"], ["what", "is", "that", "?"]
        if draw < 0.45:
            noun = self._noun(("profession",))
            subject = self._proper_name() if self._chance(0.5) else self._pronoun()
            is_fitting = subject.person in ("1s", "2s") or subject.person == "3s" and subject.gender == noun.gender
            if not is_fitting:
                raise NothingFitsError
            article = english.indefinite_article(noun.english)
            return self._of_predicate(subject, Predicate(Phrase(noun.german, f"{article} {noun.english}")), False)
        if self._chance(0.5):
            phrase = self._described(self._word(list(NOUNS.values())), None, is_plural=False)
        else:
            phrase = self._with_adjective(None)
        if phrase.plural or phrase.determiner == "this":
            raise NothingFitsError
        words = german.noun_phrase(phrase, "nom"), english.noun_phrase(phrase)
        if self._chance(0.15):
            return ["ist", "das", *words[0], "?"], ["is", "that", *words[1], "?"]
        if self._chance(0.12) and phrase.determiner in ("possessive", "definite"):
            return ["das", "ist", "nicht", *words[0], "."], ["that", "is", "not", *words[1], "."]
        return ["das", "ist", *words[0], "."], ["that", "is", *words[1], "."]

    def _comparison(self) -> Pair:
        words = self._word(COMPARATIVES)
        first, second = self._actor(("person",)), self._actor(("person",))
        if first.pronoun and second.pronoun and first.person[0] == second.person[0] != "3" or second.plural:
            raise NothingFitsError
        clause = Clause(_BE, first, predicate=Predicate(words, than=second))
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _age(self) -> Pair:
        subject = self._actor(("person",) if self._chance(0.7) else ("pet", "animal", "building", "vehicle"))
        if subject.determiner == "none" or subject.count:
            raise NothingFitsError
        subject = replace(subject, adjective=None)
        if self._chance(0.3):
            clause = Clause(_BE, subject, predicate=Predicate(Phrase("", "")))
            return ["wie", "alt", *german.verb_first(clause), "?"], ["how", "old", *english.question(clause), "?"]
        years = self._number(2, 99)
        age = Predicate(Phrase(f"{german.number(years)} Jahre alt", f"{english.number(years)} years old"))
        clause = Clause(_BE, subject, predicate=age)
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _price(self) -> Pair:
        thing = self._described(self._noun(("vehicle", "device", "clothing", "furniture", "portable", "food")), None)
        if thing.determiner not in ("definite", "this", "possessive"):
            raise NothingFitsError
        amount = self._number(2, 99)
        clause = Clause(_COST, replace(thing, adjective=None))
        price = [german.number(amount), "Euro"], [english.number(amount), "euros"]
        if self._chance(0.2):
            question = replace(clause, front="question")
            return ["was", *german.verb_first(question), "?"], ["what", *english.question(question), "?"]
        return [*german.main_clause(clause), *price[0], "."], [*english.statement(clause), *price[1], "."]

    def _home(self) -> Pair:
        city = self._word(CITIES)
        where: Phrase | Location = Phrase(f"in {city.german}", f"in {city.english}")
        if self._chance(0.3):
            place = self._word([place for place in PLACES if place.noun.german in ("Stadt", "Hotel", "Bauernhof")])
            where = Location(place=place, phrase=NounPhrase(noun=place.noun))
        clause = Clause(_LIVE, self._actor(("person",)), location=where)
        if self._chance(0.25):
            question = replace(clause, location=None, front="question")
            return ["wo", *german.verb_first(question), "?"], ["where", *english.question(question), "?"]
        if self._chance(0.2):
            question = replace(clause, front="question")
            return [*german.verb_first(question), "?"], [*english.question(question), "?"]
        if self._chance(0.15):
            clause = replace(clause, negated=True)
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _liking(self) -> Pair:
        frame = next(frame for frame in FRAMES if frame.english_pattern == "swap")
        thing = self._described(self._noun(frame.subjects), None)
        person = self._actor(("person",))
        if thing.determiner not in ("definite", "this") or person.person == "3p" and person.name:
            raise NothingFitsError
        negated = self._chance(0.25)
        clause = Clause(frame, thing, "present" if self._chance(0.7) else "perfect", dative=person, negated=negated)
        opposite = replace(clause, subject=person, dative=None, accusative=thing)
        if not negated and self._chance(0.15):
            clause, opposite = (replace(each, front="question") for each in (clause, opposite))
            return [*german.verb_first(clause), "?"], [*english.question(opposite), "?"]
        return german.main_clause(clause) + ["."], english.statement(opposite) + ["."]

    def _opinion(self) -> Pair:
        """*I know*, *She says it*, *He asks the teacher*, *We believe you*."""
        frame = self._word((_KNOW, _SAY, _TRY, _PROMISE, _HOPE, _ASK, _BELIEVE))
        _, person = self._word([(frame, person) for person in _persons_of(frame)])
        subject = self._actor(("person",), person)
        tense = "present" if frame in (_KNOW, _HOPE, _BELIEVE) or self._chance(0.6) else "perfect"
        clause = Clause(frame, subject, tense)
        if frame in (_ASK, _BELIEVE):
            role = "accusative" if frame is _ASK else "dative"
            clause = clause.with_object(role, self._goal(replace(frame, objects=("person",)), subject))
        elif frame is not _HOPE and not (frame is _KNOW and self._chance(0.5)):
            clause = replace(clause, accusative=NounPhrase(pronoun=True, name_gender="n", animate_antecedent=False))
        draw = self._random.random()
        if draw < 0.25 and frame is not _HOPE:
            clause = self._denied(clause)
        elif draw < 0.4 and frame not in (_HOPE, _PROMISE):
            clause = replace(clause, front="question")
            return [*german.verb_first(clause), "?"], [*english.question(clause), "?"]
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _passive(self) -> Pair:
        frames = [
            frame
            for frame in self._frames(without=("luck", "present", "state"))
            if frame.pattern == ("acc",) and not frame.english_pattern and not set(frame.objects) & {"person", "family"}
        ]
        frame = self._word(frames)
        thing = self._described(self._noun(frame.objects), None)
        if thing.determiner in ("none", "indefinite"):
            raise NothingFitsError
        clause = Clause(frame, thing, "passive")
        if self._chance(0.3):
            clause = replace(clause, time=_YESTERDAY)
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _weather(self) -> Pair:
        verb, third_person = self._one((("regnet", "rains"), ("schneit", "snows")))
        if self._chance(0.5):
            frequency = self._word(FREQUENCIES)
            return ["es", verb, frequency.german, "."], ["it", frequency.english, third_person, "."]
        return ["es", verb, "."], ["it", third_person, "."]


def _sides(phrases: Sequence[NounPhrase]) -> tuple[list[str], list[str]]:
    names = [phrase.name for phrase in phrases if phrase.name]
    return [name.german for name in names], [name.english for name in names]
