"""Passages about people, written by rules, with questions: what a model of reading comprehension is tried out with.

A passage has a sentence about each of several people, some of the same kind; a question asks for one of these facts. So
no answer can be given without the question, and none without the passage.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from fairseq_plugins.corpora.reading_comprehension import Passage, Question

_PEOPLE = "Ada Bela Carl Dora Emil Fritz Greta Hans Ida Jakob Klara Lars".split()
_PLACES = "Aachen Bonn Celle Dresden Emden Fulda Goslar Hamburg Jena Kassel".split()
_JOBS = "baker carpenter doctor farmer gardener hunter judge miller".split()
_COLOURS = "black blue brown golden green grey purple red".split()
_THINGS = "boat bucket cart cloak door hat horse house".split()
_RELATIVES = "aunt brother cousin father grandmother".split()

_FACTS = (
    ("{name} lives in {place}.", "Where does {name} live?", "{place}"),
    ("{name} went from {place} to {other}.", "Where did {name} go to?", "{other}"),
    ("{name} went from {place} to {other}.", "Where did {name} come from?", "{place}"),
    ("{name} is the {job} of the village.", "What is {name}'s work?", "{job}"),
    ("{name} has a {colour} {thing}.", "What does {name} have?", "a {colour} {thing}"),
    ("{name} has a {colour} {thing}.", "What colour is the {thing} of {name}?", "{colour}"),
    ("The {relative} of {name} found a {colour} {thing}.", "Who found a {thing}?", "The {relative} of {name}"),
    (
        "The {relative} of {name} found a {colour} {thing}.",
        "What did the {relative} of {name} find?",
        "a {colour} {thing}",
    ),
)
"""A sentence, a question on it, and its answer."""

PEOPLE = 4
"""Of a passage, each with a question."""


def passages(count: int, seed: Sequence[int]) -> Iterator[Passage]:
    """So many passages, the same for the same seed."""
    generator = random.Random(repr(tuple(seed)))
    for number in range(1, count + 1):
        sentences: list[str] = []
        questions = []
        things = generator.sample(_THINGS, PEOPLE)
        for name, thing in zip(generator.sample(_PEOPLE, PEOPLE), things, strict=True):
            words = dict(zip(("place", "other"), generator.sample(_PLACES, 2), strict=True)) | {
                "name": name,
                "job": generator.choice(_JOBS),
                "colour": generator.choice(_COLOURS),
                "thing": thing,
                "relative": generator.choice(_RELATIVES),
            }
            sentence, question, answer = (part.format(**words) for part in generator.choice(_FACTS))
            start = len(" ".join([*sentences, ""])) + sentence.rindex(answer)
            questions.append(Question(question, (answer,), f"generated passage {number}", start))
            sentences.append(sentence)
        yield Passage(" ".join(sentences), tuple(questions))
