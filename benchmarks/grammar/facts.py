"""Labelled texts in which word order decides: who did something to whom, said in several ways.

Every sentence has a twin of the same words with the two people exchanged, so that whoever sees words without their
order can do no better than guess which of the two it is. Three tasks are made of the same facts:

- ``classification``: a sentence and who acts in it;
- ``entailment``: two sentences; the second says the same (``entailment``), the same with the people exchanged
  (``contradiction``), or something else (``neutral``);
- ``ranking``: a question ("Who paid the doctor?") and candidates, of which those answer it that say that somebody paid
  the doctor.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from .splits import split

Item = TypeVar("Item")

SIZES: Mapping[str, int] = {"train": 4000, "valid": 400, "test": 400}
CANDIDATES = 6
"""Of each question."""

PEOPLE = ("teacher", "doctor", "pilot", "farmer", "singer", "baker")
VERBS = (
    *("paid", "called", "visited", "invited", "warned", "praised", "followed", "thanked"),
    *("photographed", "recognised", "interviewed", "hired", "rescued", "phoned"),
)
TIMES = (
    *("yesterday", "last week", "on Monday", "on Friday", "in the morning", "after lunch", "before the concert"),
    *("in March", "two days ago", "at the weekend", "in the evening", "during the strike"),
)
PLACES = (
    *("in the park", "at the station", "near the bridge", "in the library", "at the market", "in the old town"),
    *("behind the school", "at the harbour", "in the garden", "outside the museum"),
)
_WAYS = (
    "the {agent} {verb} the {patient} {where} {when}",
    "the {patient} was {verb} by the {agent} {where} {when}",
    "{when} the {agent} {verb} the {patient} {where}",
    "{when} the {patient} was {verb} by the {agent} {where}",
    "it was the {agent} who {verb} the {patient} {where} {when}",
    "it was the {patient} whom the {agent} {verb} {where} {when}",
    "{where} the {patient} was {verb} {when} by the {agent}",
)


class Fact(NamedTuple):
    """Who did what to whom."""

    agent: str
    verb: str
    patient: str

    @property
    def exchanged(self) -> Fact:
        """The other way round."""
        return Fact(self.patient, self.verb, self.agent)


class FactSampler:
    """Draws facts and sentences."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator

    def fact(self) -> Fact:
        agent, patient = self._random.sample(PEOPLE, 2)
        return Fact(agent, self._one(VERBS), patient)

    def sentence(self, fact: Fact) -> str:
        text = self._one(_WAYS).format(**fact._asdict(), where=self._one(PLACES), when=self._one(TIMES))
        return text[0].upper() + text[1:] + "."

    def classified(self) -> tuple[str, str]:
        """A sentence and who acts in it."""
        fact = self.fact()
        return self.sentence(fact), fact.agent

    def entailed(self) -> tuple[str, str, str]:
        """Two sentences and how they are related."""
        fact = self.fact()
        label = self._one(("entailment", "contradiction", "neutral"))
        other = {"entailment": fact, "contradiction": fact.exchanged}.get(label) or self._other(fact)
        return self.sentence(fact), self.sentence(other), label

    def asked(self, number: int) -> list[tuple[str, str, str, str]]:
        """A question with its candidates, one or two of which answer it."""
        fact = self.fact()
        question = f"Who {fact.verb} the {fact.patient}?"
        rights = [self.sentence(fact) for _ in range(self._random.randint(1, 2))]
        wrongs = [self.sentence(fact.exchanged)]
        while len(rights) + len(wrongs) < CANDIDATES:
            wrongs.append(self.sentence(self._other(fact)))
        rows = [(question, text, "1", str(number)) for text in rights]
        rows += [(question, text, "0", str(number)) for text in wrongs]
        self._random.shuffle(rows)
        return rows

    def _other(self, fact: Fact) -> Fact:
        """Something else that happened to one of the two, or to others."""
        while True:
            other = self.fact()
            if other.verb != fact.verb or fact.patient not in (other.agent, other.patient):
                return other

    def _one(self, items: Sequence[Item]) -> Item:
        return items[self._random.randrange(len(items))]


def generate(task: str, seed: int = 1, sizes: Mapping[str, int] | None = None) -> dict[str, list[tuple[str, ...]]]:
    """The rows of ``train``, ``valid`` and ``test``; of ranking ``sizes`` are numbers of questions.

    The same seed and sizes give the same corpus everywhere. Of classification no sentence of training differs from a
    held-out one by one word alone.
    """
    sampler = FactSampler(random.Random(seed))
    sizes = {**SIZES, **(sizes or {})}
    if task == "classification":
        pairs = split(sampler.classified, lambda pair: True, sizes)
        return {name: list(rows) for name, rows in pairs.items()}
    if task == "entailment":
        return {name: [sampler.entailed() for _ in range(size)] for name, size in sizes.items()}
    return {name: [row for number in range(size) for row in sampler.asked(number)] for name, size in sizes.items()}
