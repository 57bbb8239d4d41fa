"""Draws clauses: a verb with the subjects, objects, times, places and adverbs that suit it."""

from __future__ import annotations

from dataclasses import replace

from .lexicon import (
    FREQUENCIES,
    MANNERS,
    MODALS,
    TRANSPORT,
    Frame,
    english_verb,
)
from .meaning import Clause, NounPhrase
from .phrases import LIVING, NothingFitsError, PhraseSampler


class ClauseSampler(PhraseSampler):
    """Draws clauses that make sense in both languages."""

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
            clause = replace(clause, modal=self._word(MODALS))
        clause = self._with_objects(clause, head, short)
        if "dir" in frame.pattern:
            clause = replace(clause, direction=self._direction(far=frame.german.infinitive == "fahren"))
            if frame.german.infinitive == "fahren" and self._chance(0.6):
                # "fahren" is driving in one's own car, and going in anything else.
                clause = replace(
                    clause,
                    frame=replace(frame, english=english_verb("go", "went", "gone")),
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
                clause = clause.with_object(role, head)
            elif role == "dative" and "acc" in clause.frame.pattern:
                if self._chance(0.3) and not clause.subject.pronoun:
                    receiver = NounPhrase(pronoun=True, number_and_person=self._one(("1s", "1p")))
                else:
                    receiver = self._receiver(clause.subject)
                clause = replace(clause, dative=receiver)
            else:
                with_receiver = "dat" in clause.frame.pattern and role == "accusative"
                thing = self._object(clause.frame, clause.subject, short or with_receiver)
                clause = clause.with_object(role, thing)
        return clause

    def _receiver(self, subject: NounPhrase) -> NounPhrase:
        """A person for the dative beside an accusative. A feminine dative after a noun would read as its genitive."""
        while True:
            receiver = self._someone(("person",), subject, short=True)
            if receiver.gender != "f" or receiver.plural or receiver.name or subject.pronoun:
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
        if clause.modal and self._chance(0.45):
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
        self,
        subject: NounPhrase | None = None,
        tenses: tuple[str, ...] = ("perfect",),
        *,
        times: bool = True,
        places: bool = True,
        negatable: bool = True,
        anaphoric: bool = False,
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
        return self._clause(
            self._word(frames),
            tense,
            subject,
            times=times,
            places=places,
            negatable=negatable,
            anaphoric=anaphoric,
        )

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
            raise NothingFitsError
        return replace(phrase, relative=clause)

    @staticmethod
    def _ambiguous(head: NounPhrase, clause: Clause) -> bool:
        """Whether "die Frau, die Anna gesehen hat" could mean either that saw the other."""
        if clause.gap not in ("subject", "accusative") or head.noun is None or not head.noun.is_a(LIVING):
            return False
        other = clause.accusative if clause.gap == "subject" else clause.subject
        if other is None or other.noun is not None and not other.noun.is_a(LIVING):
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
