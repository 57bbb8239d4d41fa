"""English: inflection and word order. Clauses become lists of words in which commas are words of their own."""

from __future__ import annotations

from .lexicon import EnglishVerb, Phrase
from .meaning import Clause, Location, NounPhrase, Predicate

Words = list[str]

_PRONOUNS = {  # subject, object, possessive
    "1s": ("I", "me", "my"),
    "2s": ("you", "you", "your"),
    "3sm": ("he", "him", "his"),
    "3sf": ("she", "her", "her"),
    "3sn": ("it", "it", "its"),
    "1p": ("we", "us", "our"),
    "3p": ("they", "them", "their"),
}
_BE = {
    "present": {"1s": "am", "2s": "are", "3s": "is", "1p": "are", "3p": "are"},
    "past": {"1s": "was", "2s": "were", "3s": "was", "1p": "were", "3p": "were"},
}
_UNITS: tuple[str, ...] = (
    "",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
)
_UNITS += ("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_AUXILIARY_MODALS = ("can", "could", "should")


def number(value: int) -> str:
    """The cardinal number 1 ... 999: *twenty-one*, *two hundred and fifty*."""
    hundreds, rest = divmod(value, 100)
    tens, units = divmod(rest, 10)
    small = _UNITS[rest] if rest < 20 else _TENS[tens] + (f"-{_UNITS[units]}" if units else "")
    large = "" if not hundreds else f"{'a' if hundreds == 1 else _UNITS[hundreds]} hundred"
    return f"{large} and {small}" if large and small else large or small


def ordinal(value: int) -> str:
    """The ordinal number 1 ... 31: *first*, *twentieth*, *twenty-first*."""
    head, _, last = number(value).rpartition("-")
    irregular = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
    irregular["twelve"] = "twelfth"
    last = irregular.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return f"{head}-{last}" if head else last


def indefinite_article(following: str) -> str:
    """*a* or *an*, by the sound of the word that follows."""
    word = following.lower()
    if word.startswith(("hour", "honest", "heir")):
        return "an"
    if word.startswith(("uni", "use", "eu", "one")):
        return "a"
    return "an" if word[0] in "aeiou" else "a"


def _key(person: str, gender: str) -> str:
    if person != "3s":
        return person
    return person + gender


def pronoun(phrase: NounPhrase, case: str) -> str:
    """The personal pronoun (``subject`` or ``object``); things are *it* whatever their German gender."""
    gender = phrase.gender if phrase.animate else "n"
    return _PRONOUNS[_key(phrase.person, gender)][("subject", "object").index(case)]


def noun_phrase(phrase: NounPhrase, case: str = "object") -> Words:
    """A noun phrase; ``case`` matters for pronouns only."""
    if phrase.name:
        return phrase.name.english.split()
    if phrase.noun is None:
        return [pronoun(phrase, case)]
    words: Words = []
    if phrase.owner:
        owner = noun_phrase(phrase.owner)
        words += [*owner[:-1], owner[-1] + "'s"]
    elif phrase.determiner == "definite":
        words.append("the")
    elif phrase.determiner == "this":
        words.append("these" if phrase.plural else "this")
    elif phrase.determiner == "possessive":
        words.append(_PRONOUNS[_key(phrase.possessor, phrase.possessor_gender)][2])
    elif phrase.determiner == "negative" and phrase.plural:
        words.append("any")
    if phrase.count is not None:
        words += number(phrase.count).split()
    if phrase.adjective:
        words.append(phrase.adjective.english)
    words += (phrase.noun.english_plural if phrase.plural else phrase.noun.english).split()
    is_negative_mass = phrase.determiner == "negative" and "drink" in phrase.noun.kinds
    if phrase.determiner in ("indefinite", "negative") and not phrase.plural and not is_negative_mass:
        words.insert(0, indefinite_article(words[0]))
    if phrase.relative:
        words += relative_clause(phrase, phrase.relative)
    return words


def relative_clause(head: NounPhrase, clause: Clause) -> Words:
    """A restrictive relative clause: *who*, *whom*, *to whom* of persons, *that* of things, *where* of places."""
    person = head.animate
    if clause.gap == "subject":
        return ["who" if person else "that", *predicate_of(clause)]
    if clause.gap == "place":
        opening = ["where"]
    elif clause.gap == "dative" and "acc" in clause.frame.pattern:
        opening = ["to", "whom"]
    else:
        opening = ["whom" if person else "that"]
    return [*opening, *statement(clause)]


def location(where: Location | Phrase) -> Words:
    """*in the garden*, *into the garden*, *to Berlin*."""
    if isinstance(where, Phrase):
        return where.english.split()
    word = where.place.english_direction if where.direction else where.place.english_location
    return [word, *noun_phrase(where.phrase)]


def _inflect(verb: EnglishVerb, past: bool, person: str) -> str:
    if past:
        return verb.past
    return verb.third_person if person == "3s" else verb.base


def verb_words(clause: Clause) -> tuple[str, Words]:
    """The auxiliary ("" if the verb is finite itself) and the rest of the verbs, without the particle of *pick up*."""
    person = clause.subject.person
    verb = clause.frame.english
    tense = clause.tense
    if clause.predicate:
        if tense == "future":
            return "will", ["be"]
        return _BE["past" if tense == "past" else "present"][person], []
    if tense == "progressive":
        return _BE["present"][person], [verb.progressive]
    if tense == "pluperfect":
        return "had", [verb.participle]
    if tense == "future":
        return "will", [verb.base]
    if tense == "passive":
        return _BE["past"][person], [verb.participle]
    past, chain = tense in ("perfect", "past"), [verb]
    if clause.modal:
        past = clause.modal.past
        if clause.modal.english in _AUXILIARY_MODALS:
            return clause.modal.english, [verb.base]
        if clause.modal.english == "would like to":
            return "would", ["like", "to", verb.base]
        if clause.modal.english == "be allowed to":
            return _BE["past" if past else "present"][person], ["allowed", "to", verb.base]
        base = clause.modal.english.split()[0]
        chain = [EnglishVerb(base, {"have": "had"}.get(base, base + "ed"), ""), verb]
    if clause.gladly:
        chain = [EnglishVerb("like", "liked", "liked"), verb]
    trailing = ["to", chain[1].base] if len(chain) == 2 else []
    if clause.negated or clause.front == "question":
        auxiliary = "did" if past else "does" if person == "3s" else "do"
        return auxiliary, [chain[0].base, *trailing]
    return "", [_inflect(chain[0], past, person), *trailing]


def _predicate(predicate: Predicate) -> Words:
    words = (["very"] if predicate.very else []) + predicate.words.english.split()
    return words + (["than", *noun_phrase(predicate.than, "object")] if predicate.than else [])


def complements(clause: Clause) -> Words:
    """What follows the verbs: objects, direction, manner, means, place, time."""
    words: Words = []
    pattern, particle = clause.frame.english_pattern, clause.frame.english.particle
    gap = clause.gap
    direct = None if gap == "accusative" or clause.tense == "passive" else clause.accusative
    indirect = None if gap == "dative" else clause.dative
    other = None if gap == "prepositional" else clause.prepositional
    separated = particle and direct and direct.pronoun
    if particle and not separated:
        words.append(particle)
    if pattern == "receiver":
        words += (noun_phrase(direct) if direct else []) + (["to", *noun_phrase(indirect)] if indirect else [])
    elif pattern and pattern != "swap":
        # English leaves the preposition behind when its object has moved: "the key that he looked for".
        words += clause.manner.english.split() if clause.manner else []
        only = direct or indirect or other
        words += [pattern, *(noun_phrase(only) if only else [])]
    else:
        for phrase in (indirect, direct, other):
            words += noun_phrase(phrase) if phrase else []
    if separated:
        words.append(particle)
    if clause.agent:
        words += ["by", *noun_phrase(clause.agent)]
    if clause.predicate:
        words += _predicate(clause.predicate)
    if clause.direction:
        words += location(clause.direction)
    if clause.manner and pattern in ("", "receiver", "swap"):
        words.append(clause.manner.english)
    if clause.vehicle:
        words += clause.vehicle.english.split()
    if clause.location and gap != "place":
        words += location(clause.location)
    if clause.time and clause.front != "time":
        words += clause.time.english.split()
    return words


def predicate_of(clause: Clause) -> Words:
    """A clause without its subject."""
    auxiliary, rest = verb_words(clause)
    frequency = clause.frequency.english.split() if clause.frequency else []
    if not auxiliary:
        verbs = [*frequency, *rest]
    elif clause.negated:
        verbs = ["cannot"] if auxiliary == "can" else [auxiliary, "not"]
        verbs += rest
    else:
        verbs = [auxiliary, *frequency, *rest]
    return [*verbs, *complements(clause)]


def statement(clause: Clause) -> Words:
    """A clause in the order of statements; German time in front is English time in front."""
    front = clause.time.english.split() if clause.front == "time" and clause.time else []
    return [*front, *noun_phrase(clause.subject, "subject"), *predicate_of(clause)]


def question(clause: Clause) -> Words:
    """Auxiliary, subject, the rest. ``clause.front`` must be "question"."""
    auxiliary, rest = verb_words(clause)
    frequency = clause.frequency.english.split() if clause.frequency else []
    return [auxiliary, *noun_phrase(clause.subject, "subject"), *frequency, *rest, *complements(clause)]


def infinitive(clause: Clause) -> Words:
    """*to* and the bare verb with its complements."""
    return ["to", clause.frame.english.base, *complements(clause)]
