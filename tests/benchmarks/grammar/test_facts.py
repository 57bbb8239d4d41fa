"""Built-in labelled texts: word order decides, and the same seed gives the same texts."""

from __future__ import annotations

from collections import defaultdict

from grammar.facts import CANDIDATES, PEOPLE, generate

from fairseq_plugins.corpora.builtin import COLUMNS

SIZES = {"train": 300, "valid": 30, "test": 60}


def test_classes_are_among_the_two_people_of_a_sentence_and_either_may_act() -> None:
    corpus = generate("classification", sizes=SIZES)
    assert {name: len(rows) for name, rows in corpus.items()} == SIZES
    acts_first = defaultdict(int)
    for text, label in corpus["train"]:
        named = [person for person in PEOPLE if f" {person}" in text]
        assert len(named) == 2 and label in named
        acts_first[min(named, key=text.index) == label] += 1
    assert min(acts_first.values()) > 100, "neither the first nor the second of them"


def test_questions_have_right_and_wrong_candidates() -> None:
    rows = generate("ranking", sizes=SIZES)["test"]
    assert len(rows) == CANDIDATES * SIZES["test"]
    by_question = defaultdict(list)
    for question, candidate, label, group in rows:
        by_question[group].append((question, candidate, label))
    for candidates in by_question.values():
        assert 1 <= sum(label == "1" for *_, label in candidates) <= 2
        verb, patient = (
            candidates[0][0].removesuffix("?").split(" the ")[0].split()[1],
            candidates[0][0].split()[-1][:-1],
        )
        for _, text, label in candidates:
            if label == "1":
                assert verb in text and patient in text


def test_entailment() -> None:
    rows = generate("entailment", sizes=SIZES)["train"]
    assert {label for *_, label in rows} == {"entailment", "contradiction", "neutral"}
    for premise, hypothesis, label in rows:
        people = [{person for person in PEOPLE if f" {person}" in text} for text in (premise, hypothesis)]
        assert label == "neutral" or people[0] == people[1]


def test_the_same_seed_gives_the_same_texts() -> None:
    for task in COLUMNS:
        assert generate(task, 3, SIZES) == generate(task, 3, SIZES) != generate(task, 4, SIZES)
