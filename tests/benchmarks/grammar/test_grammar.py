"""The grammars of the built-in corpora: what they promise about splits, and that German and English are right."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
import sacrebleu
from grammar import (
    SIZES,
    TRANSLATION_SIZES,
    english,
    generate_summarization,
    generate_translation,
    german,
    tokens,
    word_for_word,
)
from grammar.gloss import glosses
from grammar.headlines import Event, HeadlineSampler
from grammar.lexicon import (
    ADJECTIVES,
    FRAMES,
    FREQUENCIES,
    MANNERS,
    MODALS,
    NOUNS,
    PLACES,
    Adjective,
    Frame,
    Phrase,
)
from grammar.meaning import PERSONS, Clause, Location, NounPhrase
from grammar.plain import MOST_WORDS, PlainSampler
from grammar.sentences import Sampler, written
from grammar.splits import split
from rouge_score.rouge_scorer import RougeScorer

from fairseq_plugins.corpora import builtin

Corpus = dict[str, list[tuple[str, str]]]
ROUGE = RougeScorer(["rougeL"])


def _frozen(task: str) -> Corpus:
    """What the grammar yields with its own sizes and seed, which takes it seconds."""
    texts = builtin.read(task)
    sides = builtin.SUFFIXES[task]
    return {name: list(zip(*(texts[f"{name}.{side}"].splitlines() for side in sides), strict=True)) for name in SIZES}


@pytest.fixture(scope="module")
def translation() -> Corpus:
    return _frozen("translation")


@pytest.fixture(scope="module")
def summarization() -> Corpus:
    return _frozen("summarization")


def is_plain(pair: tuple[str, str]) -> bool:
    return len(pair[0].split()) <= MOST_WORDS and len(tokens(pair[0])) <= MOST_WORDS + 1


def _differences(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    if len(first) != len(second):
        return max(len(first), len(second))
    return sum(one != other for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("corpus", ["translation", "summarization"])
def test_sizes_and_unique_sources(corpus: str, request: pytest.FixtureRequest) -> None:
    splits = request.getfixturevalue(corpus)
    sizes = TRANSLATION_SIZES if corpus == "translation" else SIZES
    assert {name: len(pairs) for name, pairs in splits.items()} == dict(sizes)
    sources = Counter(tokens(source.removesuffix(".")) for pairs in splits.values() for source, _ in pairs)
    assert max(sources.values()) == 1


@pytest.mark.parametrize("corpus", ["translation", "summarization"])
def test_held_out_sources_differ_from_training_by_more_than_one_word(
    corpus: str, request: pytest.FixtureRequest
) -> None:
    """But for the plain ones, most of which differ by one word from others."""
    splits = request.getfixturevalue(corpus)
    splits = {name: [pair for pair in pairs if not is_plain(pair)] for name, pairs in splits.items()}
    training: dict[int, list[tuple[str, ...]]] = {}
    for source, _ in splits["train"]:
        words = tokens(source)
        training.setdefault(len(words), []).append(words)
    chosen = random.Random(0).sample(splits["test"], 40) + random.Random(1).sample(splits["valid"], 20)
    for source, _ in chosen:
        words = tokens(source)
        assert min((_differences(words, other) for other in training.get(len(words), [])), default=2) >= 2, source


@pytest.mark.system
def test_a_small_grammar_still_keeps_near_copies_apart() -> None:
    generator = random.Random(3)

    def draw() -> tuple[str, str]:
        sentence = " ".join(generator.choice("abcdef") for _ in range(5))
        return sentence, sentence

    result = split(draw, lambda pair: True, {"train": 300, "valid": 10, "test": 10})
    held_out = [tokens(pair[0]) for name in ("valid", "test") for pair in result[name]]
    nearest = [min(_differences(tokens(pair[0]), other) for other in held_out) for pair in result["train"]]
    # With six words in five places such pairs are certain to come up, so that 2 shows that they were refused.
    assert min(nearest) == 2
    with pytest.raises(ValueError, match="the grammar yields .* pairs for train, not 10000"):
        split(draw, lambda pair: True, {"train": 10000, "valid": 10, "test": 10})


def test_types_and_lengths(translation: Corpus) -> None:
    for side, most_types in (0, 1141), (1, 777):
        sentences = [tokens(pair[side]) for pairs in translation.values() for pair in pairs]
        assert 700 < len({word for sentence in sentences for word in sentence}) <= most_types
        assert 9 < sum(map(len, sentences)) / len(sentences) <= 10
    lengths = [len(tokens(pair[0])) for pairs in translation.values() for pair in pairs if not is_plain(pair)]
    assert min(lengths) >= 8 and max(lengths) == 15


def test_a_third_is_plain(translation: Corpus) -> None:
    for name, pairs in translation.items():
        plain = [pair for pair in pairs if len(tokens(pair[0])) < 8]
        assert len(plain) == TRANSLATION_SIZES[name] // 3
        assert all(is_plain(pair) for pair in plain)
        without_stop = [pair for pair in plain if pair[0][-1] not in ".?"]
        assert 0.05 < len(without_stop) / len(plain) < 0.2
        assert all(target[-1] not in ".?" for _, target in without_stop)


def test_each_word_comes_up_in_plain_sentences_in_its_common_forms(translation: Corpus) -> None:
    counts = Counter(word for pair in translation["train"] if is_plain(pair) for word in tokens(pair[0]))
    verbs = {frame.german for frame in FRAMES if frame.english_pattern != "swap" and "person" in frame.subjects}
    forms = {
        **{f"{verb.infinitive} {person}": german.present(verb, person) for verb in verbs for person in PERSONS},
        **{
            frame.german.participle: frame.german.participle
            for frame in FRAMES
            if not frame.flags & {"present"} and not frame.german.participle.startswith("ge")
        },
        **{noun.german: noun.german for noun in NOUNS.values()},
        **{noun.plural: noun.plural for noun in NOUNS.values() if noun.plural},
        **{adjective.german: adjective.german for adjective in ADJECTIVES},
        **{phrase.german: phrase.german for phrase in (*FREQUENCIES, *MANNERS.values())},
        **{form: form for modal in MODALS for form in modal.forms},
    }
    assert {name for name, form in forms.items() if not counts[form.lower()]} == set()
    attributive = {
        adjective.german: [adjective.stem + ending for ending in ("e", "en", "er", "es", "em")]
        for adjective in ADJECTIVES
    }
    assert {name for name, words in attributive.items() if sum(counts[word] for word in words) < 5} == set()


def test_the_words_of_the_test_set_are_known_from_training(translation: Corpus) -> None:
    known = {word for source, _ in translation["train"] for word in tokens(source)}
    test = [word for source, _ in translation["test"] for word in tokens(source)]
    assert sum(word not in known for word in test) / len(test) < 0.005


@pytest.mark.system
def test_same_source_never_has_two_translations() -> None:
    translations: dict[str, set[str]] = {}
    for sampler in Sampler(random.Random(5)), PlainSampler(random.Random(5)):
        for _ in range(6000):
            source, target = sampler.sentence()
            translations.setdefault(source, set()).add(target)
    ambiguous = {source: targets for source, targets in translations.items() if len(targets) > 1}
    assert not ambiguous


def test_word_for_word_knows_every_word_and_scores_low(translation: Corpus) -> None:
    unknown = {
        word
        for pairs in translation.values()
        for source, _ in pairs
        for word in source.rstrip(".?").replace(",", "").split()
        if word not in glosses() and word[:1].lower() + word[1:] not in glosses()
    }
    assert not unknown
    output = [word_for_word(source) for source, _ in translation["test"]]
    score = sacrebleu.corpus_bleu(output, [[target for _, target in translation["test"]]]).score
    assert 10 < score <= 40


def test_word_for_word() -> None:
    assert word_for_word("Gestern hat der Mann einen Apfel gegessen.") == "Yesterday has the man an apple eaten."
    assert word_for_word("Die Frau ruft heute Abend einundzwanzig Kinder an.").startswith(
        "The woman calls today evening"
    )


def test_another_seed_gives_another_corpus() -> None:
    sizes = {"train": 30, "valid": 2, "test": 2}
    for generate in generate_translation, generate_summarization:
        assert generate(7, sizes) == generate(7, sizes) != generate(8, sizes)


def test_headlines(summarization: Corpus) -> None:
    for pairs in summarization.values():
        assert all(4 <= len(headline.split()) <= 9 for _, headline in pairs)
        assert all(article.endswith(".") and not headline.endswith(".") for article, headline in pairs)
    articles = [len(tokens(article)) for article, _ in summarization["train"]]
    headlines = [len(tokens(headline)) for _, headline in summarization["train"]]
    assert sum(articles) > 3 * sum(headlines)
    # A headline is no copy of the article's beginning.
    lead = [article.split()[: len(headline.split())] == headline.split() for article, headline in summarization["test"]]
    assert not any(lead)


def test_no_rule_writes_every_headline() -> None:
    """The best one, the weightier of two facts and the office of a person, falls short of ROUGE-L 95."""
    sampler = HeadlineSampler(random.Random(11))
    facts: list[tuple[int, str]] = []
    offices: dict[str, str] = {}
    named, events = sampler._named, sampler._events

    def kept(weight: int, event: Event) -> Event:
        facts.append((weight, event.headline))
        return event

    def known(office: str) -> tuple[str, str]:
        article, name = named(office)
        offices[name] = office
        return article, name

    sampler._named = known  # type: ignore[method-assign]
    sampler._events = tuple(lambda weight=weight, draw=draw: kept(weight, draw()) for weight, draw in enumerate(events))
    scores = []
    for _ in range(1000):
        facts.clear()
        offices.clear()
        _, headline = sampler.pair()
        guess = min(facts)[1]
        for name, office in offices.items():
            guess = guess.replace(name, office)
        scores.append(ROUGE.score(headline, guess)["rougeL"].fmeasure)
    assert 0.8 < sum(scores) / len(scores) < 0.95


# German and English ----------------------------------------------------------------------------------------


def _frame(german_infinitive: str, english_base: str = "") -> Frame:
    return next(
        frame
        for frame in FRAMES
        if frame.german.particle + frame.german.infinitive == german_infinitive
        and english_base in ("", frame.english.base)
    )


def _adjective(word: str) -> Adjective:
    return next(adjective for adjective in ADJECTIVES if adjective.english == word)


def _the(noun: str, **options: object) -> NounPhrase:
    return NounPhrase(noun=NOUNS[noun], **options)


@pytest.mark.parametrize(
    ("noun", "determiner", "plural", "forms"),
    [
        ("Mann", "definite", False, ("der alte Mann", "den alten Mann", "dem alten Mann", "des alten Mannes")),
        ("Mann", "indefinite", False, ("ein alter Mann", "einen alten Mann", "einem alten Mann", "eines alten Mannes")),
        ("Mann", "definite", True, ("die alten Männer", "die alten Männer", "den alten Männern", "der alten Männer")),
        ("Mann", "indefinite", True, ("alte Männer", "alte Männer", "alten Männern", "alter Männer")),
        ("Frau", "definite", False, ("die alte Frau", "die alte Frau", "der alten Frau", "der alten Frau")),
        ("Frau", "negative", False, ("keine alte Frau", "keine alte Frau", "keiner alten Frau", "keiner alten Frau")),
        ("Auto", "this", False, ("dieses alte Auto", "dieses alte Auto", "diesem alten Auto", "dieses alten Autos")),
        ("Auto", "indefinite", False, ("ein altes Auto", "ein altes Auto", "einem alten Auto", "eines alten Autos")),
        ("Auto", "definite", True, ("die alten Autos", "die alten Autos", "den alten Autos", "der alten Autos")),
        (
            "Student",
            "definite",
            False,
            ("der alte Student", "den alten Studenten", "dem alten Studenten", "des alten Studenten"),
        ),
        (
            "Holzhaus",
            "definite",
            False,
            ("das alte Holzhaus", "das alte Holzhaus", "dem alten Holzhaus", "des alten Holzhauses"),
        ),
    ],
)
def test_cases_and_adjective_endings(noun: str, determiner: str, plural: bool, forms: tuple[str, ...]) -> None:
    phrase = _the(noun, determiner=determiner, plural=plural, adjective=_adjective("old"))
    assert tuple(" ".join(german.noun_phrase(phrase, case)) for case in ("nom", "acc", "dat", "gen")) == forms


def test_strong_endings_without_article() -> None:
    coffee = _the("Kaffee", determiner="none", adjective=_adjective("cold"))
    milk = _the("Milch", determiner="none", adjective=_adjective("cold"))
    assert german.noun_phrase(coffee, "acc") == ["kalten", "Kaffee"]
    assert german.noun_phrase(milk, "dat") == ["kalter", "Milch"]
    assert german.noun_phrase(
        _the("Buch", determiner="none", plural=True, count=21, adjective=_adjective("new")), "acc"
    ) == [
        "einundzwanzig",
        "neue",
        "Bücher",
    ]


def test_stems_and_persons_of_verbs() -> None:
    def forms(name: str) -> list[str]:
        return [german.present(_frame(name).german, person) for person in ("1s", "2s", "3s", "1p", "3p")]

    assert forms("lesen") == ["lese", "liest", "liest", "lesen", "lesen"]
    assert forms("warten") == ["warte", "wartest", "wartet", "warten", "warten"]
    assert forms("finden") == ["finde", "findest", "findet", "finden", "finden"]
    assert forms("füttern") == ["füttere", "fütterst", "füttert", "füttern", "füttern"]
    assert forms("mögen") == ["mag", "magst", "mag", "mögen", "mögen"]
    assert forms("einladen") == ["lade", "lädst", "lädt", "laden", "laden"]
    assert forms("tragen") == ["trage", "trägst", "trägt", "tragen", "tragen"]
    assert forms("tanzen") == ["tanze", "tanzt", "tanzt", "tanzen", "tanzen"]
    assert forms("öffnen") == ["öffne", "öffnest", "öffnet", "öffnen", "öffnen"]


ME = NounPhrase(pronoun=True, number_and_person="1s")
CALL = Clause(
    _frame("anrufen"),
    NounPhrase(noun=NOUNS["Vater"], determiner="possessive", possessor="1s"),
    accusative=NounPhrase(noun=NOUNS["Arzt"]),
)


def _german_main(clause: Clause) -> str:
    return written([*german.main_clause(clause), "."])


def _english_main(clause: Clause) -> str:
    return written([*english.statement(clause), "."])


def test_separable_verbs() -> None:
    assert _german_main(CALL) == "Mein Vater ruft den Arzt an."
    assert " ".join(german.subordinate(CALL)) == "mein Vater den Arzt anruft"
    assert " ".join(german.infinitive(CALL)) == "den Arzt anzurufen"
    assert _german_main(replace(CALL, tense="perfect")) == "Mein Vater hat den Arzt angerufen."
    assert _english_main(replace(CALL, tense="perfect")) == "My father called the doctor."
    assert _german_main(replace(CALL, tense="modal", modal=MODALS[1])) == "Mein Vater muss den Arzt anrufen."
    assert (
        _english_main(replace(CALL, tense="modal", modal=MODALS[1], negated=True))
        == "My father does not have to call the doctor."
    )


def test_verb_second_and_verb_final() -> None:
    clause = replace(CALL, tense="perfect", time=Phrase("gestern", "yesterday"), front="time")
    assert _german_main(clause) == "Gestern hat mein Vater den Arzt angerufen."
    assert _english_main(clause) == "Yesterday my father called the doctor."
    assert " ".join(german.subordinate(replace(clause, front="subject"))) == "mein Vater gestern den Arzt angerufen hat"
    assert _german_main(replace(clause, front="accusative")) == "Den Arzt hat mein Vater gestern angerufen."
    assert _english_main(replace(clause, front="accusative")) == "My father called the doctor yesterday."


def test_negation_and_questions_with_do() -> None:
    clause = replace(CALL, tense="perfect", negated=True)
    assert _german_main(clause) == "Mein Vater hat den Arzt nicht angerufen."
    assert _english_main(clause) == "My father did not call the doctor."
    assert _english_main(replace(CALL, negated=True)) == "My father does not call the doctor."
    nobody = replace(clause, accusative=_the("Arzt", determiner="negative"))
    assert _german_main(nobody) == "Mein Vater hat keinen Arzt angerufen."
    assert _english_main(nobody) == "My father did not call a doctor."
    question = replace(CALL, tense="perfect", front="question")
    assert " ".join(english.question(question)) == "did my father call the doctor"
    assert " ".join(german.verb_first(question)) == "hat mein Vater den Arzt angerufen"


def test_relative_clauses_have_the_case_of_their_gap() -> None:
    def described(head: NounPhrase, clause: Clause) -> tuple[str, str]:
        phrase = replace(head, relative=clause)
        likes = Clause(_frame("kennen"), phrase, accusative=_the("Koch"))
        return _german_main(likes), _english_main(likes)

    father = _the("Vater", determiner="possessive", possessor="1s")
    man, woman = _the("Mann"), _the("Frau")
    assert described(man, Clause(_frame("sehen"), father, "perfect", accusative=man, gap="accusative")) == (
        "Der Mann, den mein Vater gesehen hat, kennt den Koch.",
        "The man whom my father saw knows the cook.",
    )
    assert described(woman, Clause(_frame("helfen"), father, "perfect", dative=woman, gap="dative")) == (
        "Die Frau, der mein Vater geholfen hat, kennt den Koch.",
        "The woman whom my father helped knows the cook.",
    )
    women = _the("Frau", plural=True)
    assert described(women, Clause(_frame("danken"), father, "perfect", dative=women, gap="dative")) == (
        "Die Frauen, denen mein Vater gedankt hat, kennen den Koch.",
        "The women whom my father thanked know the cook.",
    )
    assert described(
        man, Clause(_frame("warten", "wait"), father, "perfect", prepositional=man, gap="prepositional")
    ) == (
        "Der Mann, auf den mein Vater gewartet hat, kennt den Koch.",
        "The man whom my father waited for knows the cook.",
    )
    assert described(man, Clause(_frame("lachen"), man, "perfect", prepositional=_the("Film"), gap="subject")) == (
        "Der Mann, der über den Film gelacht hat, kennt den Koch.",
        "The man who laughed about the film knows the cook.",
    )


def test_prepositions_contract_and_govern_cases() -> None:
    def place(noun: str, direction: bool) -> tuple[str, str]:
        entry = next(place for place in PLACES if place.noun.german == noun)
        where = Location(place=entry, phrase=NounPhrase(noun=entry.noun), direction=direction)
        return " ".join(german.location(where)), " ".join(english.location(where))

    assert place("Garten", False) == ("im Garten", "in the garden")
    assert place("Garten", True) == ("in den Garten", "into the garden")
    assert place("Küche", False) == ("in der Küche", "in the kitchen")
    assert place("Bahnhof", True) == ("zum Bahnhof", "to the station")
    assert place("Museum", True) == ("ins Museum", "to the museum")
    where = Location(place=PLACES[1], phrase=NounPhrase(noun=PLACES[1].noun))
    relative = _the("Garten", relative=Clause(_frame("schlafen"), ME, gap="place", location=where))
    assert " ".join(german.preposition("in", relative, "dat")).startswith("in dem Garten , in dem ich schlafe")


@pytest.mark.parametrize(
    ("value", "german_word", "english_word"),
    [
        (12, "zwölf", "twelve"),
        (16, "sechzehn", "sixteen"),
        (17, "siebzehn", "seventeen"),
        (21, "einundzwanzig", "twenty-one"),
        (37, "siebenunddreißig", "thirty-seven"),
        (90, "neunzig", "ninety"),
        (100, "hundert", "a hundred"),
        (266, "zweihundertsechsundsechzig", "two hundred and sixty-six"),
        (912, "neunhundertzwölf", "nine hundred and twelve"),
    ],
)
def test_numbers(value: int, german_word: str, english_word: str) -> None:
    assert german.number(value) == german_word
    assert english.number(value) == english_word


def test_ordinals() -> None:
    expected = {1: "ersten first", 3: "dritten third", 7: "siebten seventh", 8: "achten eighth", 12: "zwölften twelfth"}
    expected |= {20: "zwanzigsten twentieth", 21: "einundzwanzigsten twenty-first", 30: "dreißigsten thirtieth"}
    assert {value: f"{german.ordinal(value)} {english.ordinal(value)}" for value in expected} == expected


def test_compounds_inherit_from_their_last_part() -> None:
    table = NOUNS["Küchentisch"]
    assert (table.gender, table.plural, table.english_plural) == ("m", "Küchentische", "kitchen tables")
    assert english.noun_phrase(_the("Lederjacke", determiner="indefinite")) == ["a", "leather", "jacket"]
    assert english.noun_phrase(_the("Apfelkuchen", determiner="indefinite")) == ["an", "apple", "cake"]


def test_a_and_an(translation: Corpus) -> None:
    assert [
        english.indefinite_article(word) for word in ("apple", "old", "hour", "university", "European", "pear")
    ] == [
        "an",
        "an",
        "an",
        "a",
        "a",
        "a",
    ]
    wrong = []
    for pairs in translation.values():
        for _, target in pairs:
            words = target.lower().split()
            wrong += [
                target
                for word, following in zip(words, words[1:], strict=False)
                if word in ("a", "an") and (word == "an") != (following[0] in "aeiou")
            ]
    assert not wrong


def test_third_person_and_plural_agree() -> None:
    sleeping = Clause(_frame("schlafen"), _the("Kind"))
    assert (_german_main(sleeping), _english_main(sleeping)) == ("Das Kind schläft.", "The child sleeps.")
    many = Clause(_frame("schlafen"), _the("Kind", plural=True))
    assert (_german_main(many), _english_main(many)) == ("Die Kinder schlafen.", "The children sleep.")
    going = Clause(_frame("gehen"), _the("Kind"))
    assert _english_main(going) == "The child goes."
    owner = _the("Auto", owner=_the("Lehrer"))
    assert german.noun_phrase(owner, "nom") == ["das", "Auto", "des", "Lehrers"]
    assert english.noun_phrase(owner) == ["the", "teacher's", "car"]


def test_reflexive_and_swapped_verbs() -> None:
    looking = Clause(_frame("freuen"), ME, prepositional=_the("Reise"))
    assert _german_main(looking) == "Ich freue mich auf die Reise."
    assert _english_main(looking) == "I look forward to the trip."
    complaint = Clause(_frame("beschweren"), _the("Koch"), "perfect", prepositional=_the("Suppe"))
    assert " ".join(german.subordinate(complaint)) == "sich der Koch über die Suppe beschwert hat"
