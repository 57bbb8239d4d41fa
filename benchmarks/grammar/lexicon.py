"""The bilingual lexicon of the built-in corpus: words with all that German and English inflection need to know of them.

The words are in tables (``words/*.tsv``), so that a reader can check them like a dictionary. A field of several names
separates them with spaces. Names with a capital letter are German nouns, names in lower case are kinds of nouns. Where
an order is drawn from by frequency, the most usual words come first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .vocabulary import rows, rows_by_kind

_DOUBLED = ("put", "get", "sit", "run", "swim", "shop", "forget")


@dataclass(frozen=True)
class Noun:
    """A noun of both languages. ``oblique`` is its accusative and dative singular (weak nouns add -n or -en)."""

    german: str
    gender: str  # "m", "f" or "n"
    plural: str
    genitive: str
    oblique: str
    english: str
    english_plural: str
    kinds: tuple[str, ...]

    def is_a(self, names: tuple[str, ...]) -> bool:
        """Whether one of ``names`` is this noun or one of its kinds."""
        return self.german in names or any(kind in names for kind in self.kinds)


@dataclass(frozen=True)
class Adjective:
    """An adjective; ``stem`` takes the endings (*teuer*, but *teur-e*)."""

    german: str
    stem: str
    english: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class GermanVerb:
    """A German verb; ``infinitive`` and ``third_person`` (singular present) are without the separable ``particle``."""

    particle: str
    infinitive: str
    third_person: str
    participle: str
    auxiliary: str  # "haben" or "sein"
    reflexive: bool = False


@dataclass(frozen=True)
class EnglishVerb:
    """An English verb; ``particle`` follows the verb (*pick up*), and a pronoun object is between the two."""

    base: str
    past: str
    participle: str
    particle: str = ""

    @property
    def third_person(self) -> str:
        """*goes*, *tidies*, *has*, *sees*."""
        if self.base == "have":
            return "has"
        return self.base + "es" if self.base == "go" else add_s(self.base)

    @property
    def progressive(self) -> str:
        """*reading*, *writing*, *putting*."""
        if self.base in _DOUBLED:
            return self.base + self.base[-1] + "ing"
        if self.base.endswith("e") and not self.base.endswith("ee"):
            return self.base[:-1] + "ing"
        return self.base + "ing"


@dataclass(frozen=True)
class Frame:
    """A verb in one meaning: what it is in both languages, and which subjects, objects, places and adverbs suit it.

    ``pattern`` lists the German objects: ``acc``, ``dat``, ``auf:acc``, ``mit:dat`` and so on, ``dir`` (a direction).
    ``english_pattern`` is "" (objects follow the verb), ``receiver`` (the dative becomes *to* and is last),
    ``swap`` (the dative becomes the subject), or a preposition before the only object.

    Flags: ``habit`` suits *every day*; ``now`` suits *gerade* and the English progressive; ``state`` may be in
    the present without an adverb; ``present`` has no other tense; ``lasting`` suits *während*; ``luck`` is not done on
    purpose (no modal, no *um zu*); ``vague`` has an indefinite object; ``placed`` always has a place.
    """

    german: GermanVerb
    english: EnglishVerb
    subjects: tuple[str, ...]
    pattern: tuple[str, ...]
    english_pattern: str
    objects: tuple[str, ...]
    places: tuple[str, ...]
    flags: frozenset[str]
    manners: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Place:
    """How one is at a place and how one gets there: the prepositions of both languages."""

    noun: Noun
    location: str
    direction: str
    direction_case: str
    english_location: str
    english_direction: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """A passing state of a person, and the verbs (German infinitives) of what one does because and in spite of it."""

    words: Phrase
    because: tuple[str, ...]
    despite: tuple[str, ...]


@dataclass(frozen=True)
class Phrase:
    """A fixed expression in both languages (an adverb, a conjunction)."""

    german: str
    english: str


def add_s(word: str) -> str:
    """The regular English plural, or third person singular: *buses*, *stories*, *cars*."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


@dataclass(frozen=True)
class Modal:
    """A German modal in one tense, by person, and its English: an auxiliary, or a verb with *to*."""

    infinitive: str
    forms: tuple[str, ...]  # first, second, third person singular; first and third person plural
    english: str
    past: bool
    negatable: bool
    gloss: str
    """What a dictionary would give for any of its forms."""


def _noun(german: str, gender: str, genitive: str, oblique: str, english: str, **row: str) -> Noun:
    regular = german if gender == "f" else german + ("es" if german.endswith(("s", "z", "ß")) else "s")
    return Noun(
        german=german,
        gender=gender,
        plural=row["plural"],
        genitive=genitive or regular,
        oblique=oblique or german,
        english=english,
        english_plural=row["english_plural"] or add_s(english),
        kinds=tuple(row["kinds"].split()),
    )


def _compound(first: str, english: str, head: Noun) -> Noun:
    """A compound inherits gender, plural and kinds from its head."""

    def join(form: str) -> str:
        return first + form[0].lower() + form[1:] if form else ""

    return Noun(
        german=join(head.german),
        gender=head.gender,
        plural=join(head.plural),
        genitive=join(head.genitive),
        oblique=join(head.oblique),
        english=f"{english} {head.english}",
        english_plural=f"{english} {head.english_plural}",
        kinds=(*head.kinds, "compound"),
    )


def _german_verb(reflexive: str, **row: str) -> GermanVerb:
    return GermanVerb(reflexive=bool(reflexive), **row)


def english_verb(base: str, past: str = "", participle: str = "") -> EnglishVerb:
    """An English verb, regular where no forms are given; ``base`` may have a particle (*pick_up*)."""
    base, _, particle = base.partition("_")
    if not past:
        past = base + "d" if base.endswith("e") else base + "ed"
        if base.endswith("y") and base[-2] not in "aeiou":
            past = base[:-1] + "ied"
        elif base in _DOUBLED:
            past = base + base[-1] + "ed"
    return EnglishVerb(base, past, participle or past, particle)


def _frame(row: dict[str, str]) -> Frame:
    return Frame(
        german=GERMAN_VERBS[row["german"]],
        english=english_verb(row["english"], row["past"], row["participle"]),
        subjects=tuple(row["subjects"].split()),
        pattern=tuple(row["pattern"].split()),
        english_pattern=row["english_pattern"],
        objects=tuple(row["objects"].split()),
        places=tuple(row["places"].split()),
        flags=frozenset(row["flags"].split()),
        manners=tuple(row["manners"].split()),
    )


def _special_frame(german: str, english: str, past: str, participle: str) -> Frame:
    verb = english_verb(english, past, participle)
    return Frame(GERMAN_VERBS[german], verb, ("person",), (), "", (), (), frozenset())


def _all_nouns() -> dict[str, Noun]:
    nouns = {row["german"]: _noun(**row) for row in rows("nouns")}
    for row in rows("compounds"):
        for head in row["heads"].split():
            compound = _compound(row["german"], row["english"], nouns[head])
            nouns[compound.german] = compound
    return nouns


NOUNS = _all_nouns()
ADJECTIVES = tuple(
    Adjective(
        row["german"], row["stem"] or row["german"].removesuffix("e"), row["english"], tuple(row["kinds"].split())
    )
    for row in rows("adjectives")
)
CONTRADICTIONS = frozenset((row["adjective"], row["noun_or_kind"]) for row in rows("contradictions"))
"""Adjectives that would contradict nouns, or kinds of nouns, although the kinds allow them."""
STATES = tuple(
    State(Phrase(row["german"], row["english"]), tuple(row["because"].split()), tuple(row["despite"].split()))
    for row in rows("states")
)
GERMAN_VERBS = {row["particle"] + row["infinitive"]: _german_verb(**row) for row in rows("verbs")}
FRAMES = tuple(map(_frame, rows("frames")))
SPECIAL_FRAMES = {
    kind: tuple(_special_frame(**row) for row in frames) for kind, frames in rows_by_kind("special_frames").items()
}
"""Kind → the verbs of sentences that are built in a way of their own, such as *say that*."""
ALL_FRAMES = (*FRAMES, *(frame for frames in SPECIAL_FRAMES.values() for frame in frames))
PLACES = tuple(
    Place(
        noun=NOUNS[row["noun"]],
        location=row["location"],
        direction=row["direction"],
        direction_case=row["case"],
        english_location=row["english_location"],
        english_direction=row["english_direction"],
        groups=tuple(row["groups"].split()),
    )
    for row in rows("places")
)
MODALS = tuple(
    Modal(
        infinitive=row["infinitive"],
        forms=tuple(row[person] for person in ("1s", "2s", "3s", "1p", "3p")),
        english=row["english"],
        past=bool(row["past"]),
        negatable=bool(row["negatable"]),
        gloss=row["gloss"],
    )
    for row in rows("modals")
)
_PHRASES = {kind: tuple(Phrase(**row) for row in phrases) for kind, phrases in rows_by_kind("phrases").items()}
CITIES = _PHRASES["city"]
COMPARATIVES = _PHRASES["comparative"]
"""Of persons."""
MANNERS = {phrase.german: phrase for phrase in _PHRASES["manner"]}
FREQUENCIES = _PHRASES["frequency"]
WEEKDAYS = _PHRASES["weekday"]
DAY_PARTS = _PHRASES["day part"]
MONTHS = _PHRASES["month"]
PAST_TIMES = _PHRASES["past"]
FUTURE_TIMES = _PHRASES["future"]
HABITUAL_TIMES = _PHRASES["habitual"]
TIME_UNITS = _PHRASES["time unit"]
"""In the dative plural of *vor drei Tagen*."""
TRANSPORT = _PHRASES["transport"]
_NAMES = {kind: tuple(row["name"] for row in names) for kind, names in rows_by_kind("names").items()}
MALE_NAMES, FEMALE_NAMES, SURNAMES = _NAMES["male"], _NAMES["female"], _NAMES["surname"]
