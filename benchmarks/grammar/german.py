"""German: inflection and word order. Clauses become lists of words in which commas are words of their own."""

from __future__ import annotations

from .lexicon import GermanVerb, Noun, Phrase
from .meaning import PERSONS, Clause, Location, NounPhrase, Predicate

Words = list[str]

# Endings of "dies-" by gender (or plural) in nominative, accusative, dative, genitive; "der" itself is irregular.
_CASES = ("nom", "acc", "dat", "gen")
_DEFINITE = {
    "m": ("der", "den", "dem", "des"),
    "f": ("die", "die", "der", "der"),
    "n": ("das", "das", "dem", "des"),
    "pl": ("die", "die", "den", "der"),
}
_STRONG = {
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "pl": ("e", "e", "en", "er"),
}
_AFTER_EIN = {"m": ("", "en", "em", "es"), "f": ("e", "e", "er", "er"), "n": ("", "", "em", "es"), "pl": _STRONG["pl"]}
_WEAK = {"m": ("e", "en", "en", "en"), "f": ("e", "e", "en", "en"), "n": ("e", "e", "en", "en"), "pl": ("en",) * 4}
_MIXED = {"m": ("er", "en", "en", "en"), "f": ("e", "e", "en", "en"), "n": ("es", "es", "en", "en"), "pl": ("en",) * 4}
_RELATIVE = {**_DEFINITE, "pl": ("die", "die", "denen", "deren")}

_PRONOUNS = {  # nominative, accusative, dative, reflexive
    "1s": ("ich", "mich", "mir", "mich"),
    "2s": ("du", "dich", "dir", "dich"),
    "3sm": ("er", "ihn", "ihm", "sich"),
    "3sf": ("sie", "sie", "ihr", "sich"),
    "3sn": ("es", "es", "ihm", "sich"),
    "1p": ("wir", "uns", "uns", "uns"),
    "3p": ("sie", "sie", "ihnen", "sich"),
}
_POSSESSIVES = {"1s": "mein", "2s": "dein", "3sm": "sein", "3sn": "sein", "3sf": "ihr", "1p": "unser", "3p": "ihr"}
_AUXILIARIES = {
    ("haben", "present"): ("habe", "hast", "hat", "haben", "haben"),
    ("haben", "past"): ("hatte", "hattest", "hatte", "hatten", "hatten"),
    ("sein", "present"): ("bin", "bist", "ist", "sind", "sind"),
    ("sein", "past"): ("war", "warst", "war", "waren", "waren"),
    ("werden", "present"): ("werde", "wirst", "wird", "werden", "werden"),
    ("werden", "past"): ("wurde", "wurdest", "wurde", "wurden", "wurden"),
}
_CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
}
_UNITS: tuple[str, ...] = (
    "",
    "ein",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
)
_UNITS += ("vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn")
_TENS = ("", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")


def number(value: int) -> str:
    """The cardinal number 2 ... 999 as one word: *einundzwanzig*, *zweihundertfünfzig*."""
    hundreds, rest = divmod(value, 100)
    word = "" if not hundreds else ("" if hundreds == 1 else _UNITS[hundreds]) + "hundert"
    if rest < 20:
        return word + ("eins" if rest == 1 else _UNITS[rest])
    tens, units = divmod(rest, 10)
    return word + (_UNITS[units] + "und" if units else "") + _TENS[tens]


def ordinal(value: int) -> str:
    """The ordinal number 1 ... 31 with the dative ending: *ersten*, *dritten*, *einundzwanzigsten*."""
    irregular = {1: "ersten", 3: "dritten", 7: "siebten", 8: "achten"}
    return irregular.get(value) or number(value) + ("ten" if value < 20 else "sten")


def present(verb: GermanVerb, person: str) -> str:
    """The present of a verb, without its separable particle."""
    if verb.infinitive == "sein":
        return _AUXILIARIES["sein", "present"][PERSONS.index(person)]
    if person in ("1p", "3p"):
        return verb.infinitive
    if person == "3s":
        return verb.third_person
    changed = {"mögen": "mag", "wissen": "weiß"}.get(verb.infinitive)
    if person == "1s":
        if changed:
            return changed
        return verb.infinitive[:-1] + "e" if verb.infinitive.endswith("ern") else verb.infinitive[:-2] + "e"
    stem = changed or verb.third_person[:-1]
    if verb.third_person.endswith("tet") or verb.third_person.endswith("det"):
        return verb.third_person[:-1] + "st"
    if verb.third_person == "lädt":
        return "lädst"
    return stem + ("t" if stem.endswith(("s", "ß", "z", "x")) else "st")


def finite(clause: Clause) -> tuple[str, Words]:
    """The finite verb and what closes the clause (particle, participle, infinitive)."""
    verb, person = clause.frame.german, clause.subject.person
    index = PERSONS.index(person)
    infinitive = verb.particle + verb.infinitive
    if clause.modal:
        return clause.modal.forms[index], [infinitive]
    if clause.tense in ("present", "progressive"):
        return present(verb, person), [verb.particle] if verb.particle else []
    if clause.tense == "past":
        return _AUXILIARIES[verb.infinitive, "past"][index], []
    if clause.tense in ("perfect", "pluperfect"):
        time = "present" if clause.tense == "perfect" else "past"
        return _AUXILIARIES[verb.auxiliary, time][index], [verb.participle]
    if clause.tense == "future":
        return _AUXILIARIES["werden", "present"][index], [infinitive]
    if clause.tense == "passive":
        return _AUXILIARIES["werden", "past"][index], [verb.participle]
    raise ValueError(f"no verb has the tense '{clause.tense}'")


def _row(phrase: NounPhrase) -> str:
    return "pl" if phrase.plural else phrase.gender


def _form(noun: Noun, plural: bool, case: str) -> str:
    if plural:
        return noun.plural + ("n" if case == "dat" and not noun.plural.endswith(("n", "s")) else "")
    return {"nom": noun.german, "gen": noun.genitive}.get(case, noun.oblique)


def _ending(phrase: NounPhrase, case: str) -> str:
    index, row = _CASES.index(case), _row(phrase)
    if phrase.determiner in ("definite", "this"):
        return _WEAK[row][index]
    if phrase.determiner == "none" or phrase.determiner == "indefinite" and phrase.plural:
        # Strong genitives in the singular (kalten Wassers) end in -en; the corpus has none.
        return _STRONG[row][index]
    return _MIXED[row][index]


def _determiner(phrase: NounPhrase, case: str) -> Words:
    index, row = _CASES.index(case), _row(phrase)
    if phrase.determiner == "definite":
        return [_DEFINITE[row][index]]
    if phrase.determiner == "this":
        return ["dies" + _STRONG[row][index]]
    if phrase.determiner == "negative":
        return ["kein" + _AFTER_EIN[row][index]]
    if phrase.determiner == "possessive":
        key = phrase.possessor + (phrase.possessor_gender if phrase.possessor == "3s" else "")
        stem = _POSSESSIVES[key]
        return [stem + _AFTER_EIN[row][index]]
    if phrase.determiner == "indefinite" and not phrase.plural:
        return ["ein" + _AFTER_EIN[row][index]]
    return []


def pronoun(phrase: NounPhrase, case: str) -> str:
    """The personal pronoun in nominative, accusative, dative, or (``refl``) the reflexive one."""
    key = phrase.person + (phrase.gender if phrase.person == "3s" else "")
    return _PRONOUNS[key][("nom", "acc", "dat", "refl").index(case)]


def noun_phrase(phrase: NounPhrase, case: str, relative: bool = True) -> Words:
    """A noun phrase in a case, with its relative clause unless that is elsewhere (``relative=False``)."""
    if phrase.name:
        words = phrase.name.german.split()
        # "Herr" is a weak noun, names themselves do not change.
        return ["Herrn" if word == "Herr" and case != "nom" else word for word in words]
    if phrase.noun is None:
        return [pronoun(phrase, case)]
    words = _determiner(phrase, case)
    if phrase.count is not None:
        words.append(number(phrase.count))
    if phrase.adjective:
        words.append(phrase.adjective.stem + _ending(phrase, case))
    words.append(_form(phrase.noun, phrase.plural, case))
    if phrase.owner:
        words += noun_phrase(phrase.owner, "gen")
    if relative and phrase.relative:
        words += relative_clause(phrase, phrase.relative)
    return words


def preposition(word: str, phrase: NounPhrase, case: str, relative: bool = True) -> Words:
    """A preposition with its noun phrase; contracted (*im*, *zum*) unless a relative clause determines the noun."""
    words = noun_phrase(phrase, case, relative)
    contracted = _CONTRACTIONS.get((word, words[0]))
    if contracted and phrase.determiner == "definite" and not phrase.relative and not phrase.pronoun:
        return [contracted, *words[1:]]
    return [word, *words]


def relative_clause(head: NounPhrase, clause: Clause) -> Words:
    """A relative clause between commas; the pronoun agrees with the head and has the case of the gap."""
    row = _row(head)

    def form(case: str) -> str:
        return _RELATIVE[row][_CASES.index(case)]

    if clause.gap == "prepositional":
        word, case = _preposition_and_case(clause)
        opening = [word, form(case)]
    elif clause.gap == "place" and isinstance(clause.location, Location):
        opening = [clause.location.place.location, form("dat")]
    else:
        opening = [form({"subject": "nom", "accusative": "acc", "dative": "dat"}[clause.gap])]
    return [",", *opening, *subordinate(clause), ","]


def location(where: Location | Phrase) -> Words:
    """*im Garten*, *in den Garten*, *nach Berlin*."""
    if isinstance(where, Phrase):
        return where.german.split()
    if where.direction:
        return preposition(where.place.direction, where.phrase, where.place.direction_case)
    return preposition(where.place.location, where.phrase, "dat")


def _preposition_and_case(clause: Clause) -> tuple[str, str]:
    for slot in clause.frame.pattern:
        if ":" in slot:
            word, case = slot.split(":")
            return word, case
    raise ValueError(f"{clause.frame.german.infinitive} has no prepositional object")


def _predicate(predicate: Predicate) -> Words:
    words = (["sehr"] if predicate.very else []) + predicate.words.german.split()
    return words + (["als", *noun_phrase(predicate.than, "nom")] if predicate.than else [])


def middle(clause: Clause, skip: str = "") -> tuple[Words, Words]:
    """What is between the finite verb and the end of the clause, and the relative clause that follows the end.

    Order: reflexive and subject, pronouns, time, dative, definite accusative, *nicht*, manner, means, place, indefinite
    accusative, prepositional object, direction, predicate. ``skip`` is what is in front already.
    """
    behind: Words = []
    reflexive = [pronoun(clause.subject, "refl")] if clause.frame.german.reflexive else []
    subject = [] if "subject" in (skip, clause.gap) else noun_phrase(clause.subject, "nom")
    words = [*subject, *reflexive] if not subject or clause.subject.pronoun else [*reflexive, *subject]

    def object_words(phrase: NounPhrase, case: str) -> Words:
        if phrase.relative:
            behind.extend(relative_clause(phrase, phrase.relative))
        return noun_phrase(phrase, case, relative=False)

    accusative = None if "accusative" in (skip, clause.gap) else clause.accusative
    dative = None if clause.gap == "dative" else clause.dative
    if accusative and accusative.pronoun:
        words.append(pronoun(accusative, "acc"))
    if dative and dative.pronoun:
        words.append(pronoun(dative, "dat"))
    if clause.time and skip != "time":
        words += clause.time.german.split()
    if clause.tense == "progressive":
        words.append("gerade")
    if clause.frequency:
        words += clause.frequency.german.split()
    if clause.gladly:
        words.append("gern")
    if dative and not dative.pronoun:
        words += object_words(dative, "dat")
    noun_object = None if accusative is None or accusative.pronoun else accusative
    late = noun_object if noun_object and noun_object.determiner in ("indefinite", "none", "negative") else None
    if noun_object and not late:
        words += object_words(noun_object, "acc")
    if clause.negated and not (late and late.determiner == "negative"):
        words.append("nicht")
    if clause.manner:
        words.append(clause.manner.german)
    if clause.vehicle:
        words += clause.vehicle.german.split()
    if clause.location and "place" not in (skip, clause.gap):
        words += location(clause.location)
    if late:
        words += object_words(late, "acc")
    if clause.prepositional and clause.gap != "prepositional":
        word, case = _preposition_and_case(clause)
        words += preposition(word, clause.prepositional, case, relative=False)
        if clause.prepositional.relative:
            behind += relative_clause(clause.prepositional, clause.prepositional.relative)
    if clause.agent:
        words += preposition("von", clause.agent, "dat")
    if clause.direction:
        words += location(clause.direction)
    if clause.predicate:
        words += _predicate(clause.predicate)
    return words, behind


def main_clause(clause: Clause) -> Words:
    """A verb-second clause."""
    verb, right = finite(clause)
    if clause.front == "time" and clause.time:
        front = clause.time.german.split()
    elif clause.front == "place" and clause.location:
        front = location(clause.location)
    elif clause.front == "accusative" and clause.accusative:
        front = noun_phrase(clause.accusative, "acc")
    else:
        front = noun_phrase(clause.subject, "nom")
    field, behind = middle(clause, skip=clause.front)
    return [*front, verb, *field, *right, *behind]


def verb_first(clause: Clause) -> Words:
    """A clause with the verb first: a question, or a main clause after a subordinate one."""
    verb, right = finite(clause)
    field, behind = middle(clause)
    return [verb, *field, *right, *behind]


def subordinate(clause: Clause) -> Words:
    """A verb-final clause without its conjunction."""
    verb, right = finite(clause)
    field, behind = middle(clause)
    if clause.tense in ("present", "progressive") and right:
        return [*field, right[0] + verb, *behind]
    return [*field, *right, verb, *behind]


def infinitive(clause: Clause) -> Words:
    """An infinitive clause with *zu*; the particle of a separable verb is before it: *anzurufen*."""
    field, behind = middle(clause, skip="subject")
    verb = clause.frame.german
    words = [verb.particle + "zu" + verb.infinitive] if verb.particle else ["zu", verb.infinitive]
    return [*field, *words, *behind]
