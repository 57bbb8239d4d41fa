"""What a sentence says, in neither language: noun phrases and clauses. ``german`` and ``english`` put it into words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .lexicon import Adjective, Frame, Modal, Noun, Phrase, Place

PERSONS = ("1s", "2s", "3s", "1p", "3p")


@dataclass(frozen=True)
class NounPhrase:
    """A noun with what belongs to it, a name, or a personal pronoun (then only ``person`` and ``gender`` count).

    ``determiner`` is "definite", "indefinite", "this", "possessive", "negative" (*kein*) or "none". ``possessor`` is a
    person (with ``possessor_gender`` in the third), ``owner`` a genitive. ``count`` is a number written as a word.
    """

    noun: Noun | None = None
    determiner: str = "definite"
    plural: bool = False
    adjective: Adjective | None = None
    count: int | None = None
    possessor: str = ""
    possessor_gender: str = ""
    owner: NounPhrase | None = None
    name: Phrase | None = None
    pronoun: bool = False
    number_and_person: str = "3s"
    name_gender: str = ""
    animate_antecedent: bool = True
    relative: Clause | None = None

    @property
    def person(self) -> str:
        """The person that the verb agrees with."""
        if self.pronoun:
            return self.number_and_person
        return "3p" if self.plural else "3s"

    @property
    def gender(self) -> str:
        """One of "m", "f" and "n"."""
        return self.noun.gender if self.noun else self.name_gender

    @property
    def animate(self) -> bool:
        """Whether English says *who*, *he* or *she*, not *which* or *it*."""
        return self.noun.is_a(("person",)) if self.noun else self.animate_antecedent


@dataclass(frozen=True)
class Location:
    """A place of the lexicon to be at, or (``direction``) to go to, and the words for it."""

    place: Place
    phrase: NounPhrase
    direction: bool = False


@dataclass(frozen=True)
class Predicate:
    """What follows *to be*: words of both languages, or *older than* a noun phrase."""

    words: Phrase
    very: bool = False
    than: NounPhrase | None = None


@dataclass(frozen=True)
class Clause:
    """A clause. ``tense`` is present, progressive, perfect, pluperfect, future, passive, past (of *sein* and
    *haben*) or modal.

    ``front`` says what is before the finite verb of a German main clause (subject, time, place or accusative), or
    that the clause is a question. ``gap`` is the role that a relative pronoun or a question word took: subject,
    accusative, dative, prepositional or place. ``modal`` is there where ``tense`` is modal. A ``location`` or
    ``direction`` may be a fixed phrase (*zu Hause*).
    """

    frame: Frame
    subject: NounPhrase
    tense: str = "present"
    modal: Modal | None = None
    negated: bool = False
    accusative: NounPhrase | None = None
    dative: NounPhrase | None = None
    prepositional: NounPhrase | None = None
    location: Location | Phrase | None = None
    direction: Location | Phrase | None = None
    vehicle: Phrase | None = None
    time: Phrase | None = None
    frequency: Phrase | None = None
    manner: Phrase | None = None
    gladly: bool = False
    predicate: Predicate | None = None
    agent: NounPhrase | None = None
    front: str = "subject"
    gap: str = ""

    def with_object(self, role: str, phrase: NounPhrase | None) -> Clause:
        """The clause with ``phrase`` in the accusative, dative or prepositional ``role``."""
        objects: dict[str, Any] = {role: phrase}
        return replace(self, **objects)

    def without(self, role: str) -> Clause:
        """The clause with a gap where ``role`` was."""
        return replace(self, gap=role)


def pronoun_for(phrase: NounPhrase) -> NounPhrase:
    """The personal pronoun that takes up ``phrase`` again."""
    return NounPhrase(
        pronoun=True,
        number_and_person=phrase.person,
        name_gender=phrase.gender,
        animate_antecedent=phrase.animate,
    )
