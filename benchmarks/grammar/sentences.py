"""Random sentence pairs: what is said is drawn from the lexicon, then put into German and into English."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from . import english, german
from .clauses import ClauseSampler
from .lexicon import (
    CITIES,
    COMPARATIVES,
    FRAMES,
    FREQUENCIES,
    FUTURE_TIMES,
    PLACES,
    SPECIAL_FRAMES,
    STATES,
    Phrase,
    State,
)
from .meaning import Clause, Location, NounPhrase, Predicate, pronoun_for
from .phrases import LIVING, NothingFitsError

Words = list[str]
Pair = tuple[Words, Words]


_BE, _ASK, _LIVE, _COST, _PAY = (SPECIAL_FRAMES[kind][0] for kind in ("be", "ask", "live", "cost", "pay"))
_OPINIONS, _ATTEMPTS = SPECIAL_FRAMES["opinion"], SPECIAL_FRAMES["attempt"]
_KNOW = _OPINIONS[1]
_NEED, _LIKE = (next(frame for frame in FRAMES if frame.english.base == base) for base in ("need", "like"))

_WEATHER = (Phrase("es regnet", "it rains"), Phrase("es schneit", "it snows"))


class Sampler(ClauseSampler):
    """Draws sentence pairs. The same ``random.Random`` state gives the same sentences on every Python and platform."""

    def __init__(self, generator: random.Random, has_round_numbers: bool = False) -> None:
        super().__init__(generator, has_round_numbers)
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
            except NothingFitsError:
                continue
            if any(
                word == following != "had" for word, following in zip(english_words, english_words[1:], strict=False)
            ):
                # "the lamp that he turned on on Monday": right, but nobody would write it.
                continue
            return written(german_words), written(english_words)

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
                clause = clause.with_object(role, self._relative(thing))
                clause = replace(clause, front="time" if clause.time else "subject")
                return german.main_clause(clause) + ["."], english.statement(clause) + ["."]
        if not clause.subject.relative:
            clause = self._front(clause)
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _state(self, state: State, subject: NounPhrase, tense: str, negatable: bool = False) -> Clause:
        very = state.words.german != "allein" and self._chance(0.35)
        clause = Clause(_BE, subject, tense, predicate=Predicate(state.words, very=very))
        return replace(clause, negated=True) if negatable and not very and self._chance(0.2) else clause

    def _following(
        self,
        verbs: tuple[str, ...],
        tense: str,
        subject: NounPhrase | None = None,
        *,
        times: bool = True,
        anaphoric: bool = False,
    ) -> Clause:
        """A clause with one of ``verbs``, of a person."""
        frames = [
            frame
            for frame in self._frames(without=("present", "luck") if tense != "perfect" else ("present",))
            if frame.german.particle + frame.german.infinitive in verbs and "person" in frame.subjects
        ]
        return self._clause(self._word(frames), tense, subject, times=times, negatable=False, anaphoric=anaphoric)

    def _because_of_state(self) -> Pair:
        state, tense = self._word(STATES), self._one(("perfect", "perfect", "modal"))
        despite = self._chance(0.35)
        verbs = state.despite if despite else state.because
        clause = self._following(verbs, tense, anaphoric=True, times=tense == "perfect")
        past = clause.modal.past if clause.modal else clause.tense == "perfect"
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
            self._word(frames),
            self._one(("perfect", "modal", "future")),
            anaphoric=True,
            negatable=False,
            places=False,
        )
        if clause.modal and clause.modal.past:
            clause = replace(clause, tense="perfect", modal=None)
        thing = clause.accusative
        if thing is None:
            raise NothingFitsError
        reason_frame = _LIKE if thing.noun is None or thing.noun.is_a(LIVING) else _NEED
        reason = Clause(reason_frame, pronoun_for(clause.subject), accusative=pronoun_for(thing))
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
        clause = self._clause(self._word(frames), self._one(("perfect", "perfect", "future", "modal")), negatable=False)
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
            self._word(aims), "present", clause.subject, times=False, places=False, negatable=False, short=True
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
        content = self._clause(self._word(aims), "present", subject, times=False, negatable=False)
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
            person, cause = self._someone(anaphoric=True), self._word(STATES)
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
        person, cause = self._someone(anaphoric=True), self._word(STATES)
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
        first = self._clause(self._word(frames), "perfect", times=False, negatable=False)
        second = self._clause(self._word(frames), "perfect", times=False, negatable=False)
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
        first = self._clause(self._word(frames), "perfect", anaphoric=True, times=False, negatable=False)
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
        person, cause = self._someone(anaphoric=True), self._word(STATES)
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
        frame = self._word(frames)
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
        amount = self._number(low, high)
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
        years, since, city = self._number(25, 65), self._number(2, 24), self._word(CITIES)
        if person.noun and person.noun.german.startswith("Groß"):
            years, since = self._number(61, 99), self._number(11, 40)
        if person.noun and "child" in person.noun.kinds:
            years, since = self._number(13, 25), self._number(2, 12)
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
        noun = self._noun((kind,))
        head = NounPhrase(noun=noun, plural=self._chance(0.15))
        adjective = self._adjective(noun)
        if adjective is None or adjective.german == "neu":
            raise NothingFitsError
        head = self._relative(head)
        words = Phrase(adjective.german, adjective.english)
        predicate = Predicate(words, very=self._chance(0.5))
        clause = Clause(_BE, head, self._one(("present", "present", "past")), predicate=predicate)
        if not predicate.very and self._chance(0.3):
            clause = replace(clause, negated=True)
        return german.main_clause(clause) + ["."], english.statement(clause) + ["."]

    def _described_place(self) -> Pair:
        frames = [frame for frame in self._frames(without=("present", "state")) if frame.places]
        frame = self._word(frames)
        place = self._one([place for place in PLACES if any(group in frame.places for group in place.groups)])
        head = NounPhrase(noun=place.noun)
        adjective = self._adjective(place.noun)
        self._used.add(place.noun.english)
        if adjective is None or adjective.german == "neu":
            raise NothingFitsError
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
