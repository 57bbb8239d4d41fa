"""Passages with questions: their forms, the places of answers, what is written, and input that cannot be used."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_plugins.corpora import data_sets
from fairseq_plugins.corpora.generated_passages import passages as generated
from fairseq_plugins.corpora.reading_comprehension import (
    Passage,
    ReadingPreparation,
    ReadingRun,
    nearest_span,
    normalized,
    read_references,
    references_of,
)
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines
from fairseq_plugins.scoring.rouge_l import rouge_l
from tests.samples_of_questions import FROG, SQUAD, WOLF, narrativeqa, write_csv

STEPS = ReadingPreparation(data_set="questions")


@pytest.fixture(autouse=True)
def no_binarising(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out fairseq-preprocess, which takes seconds."""

    def preprocess(run: ReadingRun, arguments: Sequence[str], folder: Path, name: str = "bin") -> str:
        (folder / name).mkdir(parents=True)
        return "none"

    monkeypatch.setattr(ReadingRun, "fairseq_preprocess", preprocess)


def prepare(name: str, output: Path, *options: object) -> ReadingPreparation:
    data_sets.main([name, *map(str, options), "--workers", "1", "--min-count", "1", "--output", str(output)])
    return ReadingPreparation.load(output)


def read(name: str, folder: Path, **options: Any) -> Mapping[str, list[Passage]]:
    found = data_sets.DATA_SETS[name].source(argparse.Namespace(**options), folder)
    return {split: list(passages) for split, passages in found.items()}


def places(folder: Path, split: str) -> list[str]:
    """The text of each answer's place, from what was written."""
    passages = list(read_lines(folder / "raw" / f"{split}.passage"))
    texts = []
    for line in read_lines(folder / "bin" / "span" / f"{split}.txt"):
        passage, first, last = map(int, line.split())
        words = STEPS.words(passages[passage])
        texts.append("" if first < 0 else passages[passage][words[first].start : words[last].stop])
    return texts


# The places of answers


@given(*[st.lists(st.sampled_from("abcd"), max_size=7)] * 2, st.integers(1, 5))
def test_the_nearest_place_is_the_best_of_all(passage: list[str], answer: list[str], longest: int) -> None:
    spans = [
        (rouge_l(passage[first : last + 1], [answer]), first, last)
        for first, last in itertools.combinations_with_replacement(range(len(passage)), 2)
        if last - first < longest
    ]
    best = max((score for score, _, _ in spans), default=0)
    span = nearest_span(passage, [answer], longest)
    assert span.score == pytest.approx(best)
    assert span.is_there == (best > 0)
    if best:
        assert rouge_l(passage[span.first : span.last + 1], [answer]) == pytest.approx(best)


def test_the_nearest_place_of_several_answers() -> None:
    passage = "the old king gave his daughter to the frog".split()
    assert nearest_span(passage, [["a", "king"], ["his", "daughter"]], 30)[:2] == (4, 5)
    assert nearest_span(passage, [["king", "his"]], 30)[:2] == (2, 4)


@given(*[st.lists(st.sampled_from("ab.,"), max_size=7)] * 2, st.integers(1, 5))
def test_words_that_the_score_does_not_see(passage: list[str], answer: list[str], longest: int) -> None:
    """The nearest place is the best by what is scored: answers without their punctuation."""

    def seen(words: list[str]) -> list[str]:
        return [word for word in words if word not in ".,"]

    spans = [
        rouge_l(seen(passage[first : last + 1]), [seen(answer)])
        for first, last in itertools.combinations_with_replacement(range(len(passage)), 2)
        if last - first < longest
    ]
    span = nearest_span(passage, [answer], longest, ".,")
    assert span.score == pytest.approx(max(spans, default=0))
    if span.is_there:
        assert rouge_l(seen(passage[span.first : span.last + 1]), [seen(answer)]) == pytest.approx(span.score)


@settings(max_examples=40)
@given(st.text(st.sampled_from("ab \"'`.,-(é\u0301%&\t\n“”’")))
def test_words_lie_where_they_are_said_to(text: str) -> None:
    line, end = normalized(text), 0
    for word in STEPS.words(line):
        shown = line[word.start : word.stop].lower()
        assert word.text == shown or (word.text in ("``", "''") and shown in ('"', "''"))
        assert word.start >= end and not line[end : word.start].strip()
        end = word.stop
    assert not line[end:].strip()


# Data sets


def test_narrativeqa(tmp_path: Path) -> None:
    prepared = prepare("narrativeqa", tmp_path / "data", "--input", narrativeqa(tmp_path / "narrativeqa"))
    assert {split: facts["kept"] for split, facts in prepared.splits.items()} == {"train": 2, "valid": 1, "test": 2}
    assert prepared.metric == "answers" and prepared.has_free_answers
    # In training a question whose answer has no word of the summary is left out; elsewhere it is asked.
    assert prepared.splits["train"]["read"] == 3
    assert places(tmp_path / "data", "train") == ["A frog", "the king's youngest daughter"]
    assert places(tmp_path / "data", "test") == ["through the chimney", ""]
    assert read_references(tmp_path / "data" / "raw" / "test.answers")[0] == ["through the chimney", "By the chimney"]
    oracle = prepared.splits["test"]["oracle"]
    assert oracle["squad_exact_match"] == 50 and oracle["answer_rougeL"] == 50
    assert list(read_lines(tmp_path / "data" / "tokens" / "train.question")) == [
        "who fetched the ball ?",
        "whose ball was it ?",
    ]


def test_fairytale_qa(tmp_path: Path) -> None:
    head = ["question_id", "cor_section", "question", *(f"answer{number}" for number in range(1, 7))]
    for split in "train", "val", "test":
        write_csv(
            tmp_path / "questions" / split / "frog-questions.csv",
            [
                head,
                [1, "1,2", "Who fetched it?", "the frog", "", "", "A frog", "", ""],
                [2, "2", "What?", "a ball", *[""] * 5],
            ],
        )
        write_csv(
            tmp_path / "section-stories" / split / "frog-story.csv",
            [["section", "text"], [1, "A well.\r\n\r\nA frog."], [], [2, "The frog fetched a ball."]],
        )
    passages = read("fairytale_qa", tmp_path, input=tmp_path)["valid"]
    assert [normalized(passage.text) for passage in passages] == [
        "A well. A frog. The frog fetched a ball.",
        "The frog fetched a ball.",
    ]
    assert passages[0].questions[0].answers == ("the frog", "A frog")
    (tmp_path / "section-stories" / "test" / "frog-story.csv").write_text("section,text\n1,A well.\n")
    with pytest.raises(
        InputError, match=r"test/frog-questions.csv, line 2: .*frog-story.csv has no section '2'; fetch"
    ):
        read("fairytale_qa", tmp_path, input=tmp_path)
    with pytest.raises(InputError, match="no folder questions/train there"):
        read("fairytale_qa", tmp_path, input=tmp_path / "questions")


def test_squad(tmp_path: Path) -> None:
    for name in "train", "test":
        (tmp_path / f"{name}.json").write_text(json.dumps(SQUAD))
    prepared = prepare("squad", tmp_path / "data", "--train", tmp_path / "train.json", "--test", tmp_path / "test.json")
    # The words around the characters that are named, the second 'frog' though there is a first one.
    assert next(read_lines(tmp_path / "data" / "bin" / "span" / "test.txt")) == "0 10 10"
    assert places(tmp_path / "data", "test") == ["frog", "youngest daughter", "wolf's"]
    assert prepared.metric == "squad" and prepared.splits["valid"]["passages"] == 1
    # Accents that are typed apart are one letter here, and places are counted in what is published.
    accented = json.loads(json.dumps(SQUAD))
    paragraph = {"context": "The cafe\u0301  by the cafe.", "qas": []}
    for number, (answer, start) in enumerate([("cafe", 4), ("by ", 11), ("cafe", 18)]):
        answers = [{"text": answer, "answer_start": start}]
        paragraph["qas"].append({"id": str(number), "question": "Where?", "answers": answers})
    accented["data"][0]["paragraphs"] = [paragraph]
    (tmp_path / "test.json").write_text(json.dumps(accented))
    prepare("squad", tmp_path / "accents", "--train", tmp_path / "train.json", "--test", tmp_path / "test.json")
    assert places(tmp_path / "accents", "test") == ["café", "by", "cafe"]
    paragraph["context"] += " \ud800"
    (tmp_path / "test.json").write_text(json.dumps(accented))
    with pytest.raises(InputError, match=r"test.json, question 0: 'context' has half a character"):
        prepare("squad", tmp_path / "other", "--train", tmp_path / "train.json", "--test", tmp_path / "test.json")
    (tmp_path / "test.json").write_text(json.dumps(SQUAD))
    broken = json.loads(json.dumps(SQUAD))
    broken["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] += 1
    (tmp_path / "train.json").write_text(json.dumps(broken))
    with pytest.raises(InputError, match=r"train.json, question q1: the passage has 'rog ' at character 35, not the"):
        prepare("squad", tmp_path / "other", "--train", tmp_path / "train.json", "--test", tmp_path / "test.json")
    (tmp_path / "train.json").write_text(json.dumps(SQUAD)[:-20])
    with pytest.raises(InputError, match=r"train.json: not JSON \(.*\); fetch the file again"):
        prepare("squad", tmp_path / "other", "--train", tmp_path / "train.json", "--test", tmp_path / "test.json")


def jsonl(path: Path, *lines: object) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_questions_of_one_s_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"question": "Who came?", "answers": "a wolf", "passage": WOLF},
        {"question": "Who fetched it?", "answers": ["A frog", "frog"], "passage": FROG},
        {"question": "How did he come in?", "answers": ["through the chimney"], "passage": WOLF},
    ]
    train = jsonl(tmp_path / "train.jsonl", *lines)
    prepare("questions", tmp_path / "data", "--train", train, "--valid", train, "--test", train)
    assert places(tmp_path / "data", "test") == ["A wolf", "through the chimney", "A frog"]
    said = capsys.readouterr().out
    assert "questions: 3 train (2 passages)" in said
    assert "test, if every place is found: BLEU-1 100.00" in said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not JSON"),
        ({"question": "Who?", "answers": [], "passage": WOLF}, "line 1: the question has no answer"),
        (
            {"question": "Who?", "answer": "a wolf", "passage": WOLF},
            "line 1: there is no 'answers'; did you mean 'answer'",
        ),
        ({"question": "Who?", "answers": [None], "passage": WOLF}, "line 1: 'answers' is null"),
        ({"question": "Who?", "answers": "\ud800", "passage": WOLF}, "line 1: 'answers' has half a character"),
        ({"question": "Who?", "answers": "a wolf", "passage": "a\0wolf"}, "line 1: 'passage' has a NUL character"),
        (
            {"question": "Who?", "answers": "a bear", "passage": WOLF},
            "line 1: the passage does not hold the answer 'a b",
        ),
        ({"question": "Who?", "answers": " ", "passage": WOLF}, "line 1: the question has no answer"),
        ({"question": " ", "answers": "a wolf", "passage": WOLF}, "line 1: the question is empty"),
        ({"question": "Who?", "answers": "a wolf", "passage": " "}, "line 1: the passage is empty"),
    ],
)
def test_lines_that_cannot_be_used(tmp_path: Path, line: object, message: str) -> None:
    train = jsonl(tmp_path / "train.jsonl", line)
    with pytest.raises(InputError) as error:
        prepare("questions", tmp_path / "data", "--train", train, "--valid", train)
    assert message in str(error.value) and "train.jsonl" in str(error.value)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("passage", "answer", "text", "options"),
    [
        ("The shop on Wall St. is old.", "wall St.", "Wall St.", []),
        ("The shop on Wall St. is old.", "wall St.", "Wall St.", ["--free-answers"]),
        ("He met Mr. Fox vs. the owl.", "vs.", "vs.", []),
        # A full stop says nothing.
        ("The king went home. A bear, who was old, came.", "old .", "old", ["--free-answers"]),
        ("The king went home. A bear, who was old, came.", "He was old.", "was old", ["--free-answers"]),
        # Moses takes out what is not seen: a joiner's space, a control character.
        ("a\x01b went home \u200c alone", "went", "went", ["--tokenizer", "moses"]),
    ],
)
def test_where_an_answer_is(tmp_path: Path, passage: str, answer: str, text: str, options: list[str]) -> None:
    train = jsonl(tmp_path / "train.jsonl", {"question": "Who?", "answers": answer, "passage": passage})
    prepared = prepare("questions", tmp_path / "data", "--train", train, "--valid", train, *options)
    line = next(read_lines(tmp_path / "data" / "raw" / "train.passage"))
    _, first, last = map(int, next(read_lines(tmp_path / "data" / "bin" / "span" / "train.txt")).split())
    words = prepared.words(line)
    assert line[words[first].start : words[last].stop] == text


def test_one_text_is_one_text_wherever_it_lies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In two splits it is warned of; from another folder it is prepared already."""
    line = {"question": "Who came?", "answers": "a wolf", "passage": WOLF}
    train, copy = jsonl(tmp_path / "train.jsonl", line), jsonl(tmp_path / "copy.jsonl", line)
    prepare("questions", tmp_path / "data", "--train", train, "--valid", copy)
    assert "warning: train and valid have the same text" in capsys.readouterr().out
    prepare("questions", tmp_path / "data", "--train", copy, "--valid", train)
    assert "is up to date" in capsys.readouterr().out


def test_free_answers_of_one_s_own(tmp_path: Path) -> None:
    train = jsonl(tmp_path / "train.jsonl", {"question": "Who?", "answers": "some wolf", "passage": WOLF})
    prepared = prepare("questions", tmp_path / "data", "--train", train, "--valid", train, "--free-answers")
    assert places(tmp_path / "data", "train") == ["wolf"] and prepared.metric == "answers"


def test_passages_that_are_cut(tmp_path: Path) -> None:
    """An answer behind what is read of a passage, or one that is too long, is asked for all the same, but nothing is
    learned of it."""
    lines = [
        {"question": "Who came?", "answers": "a wolf", "passage": WOLF},
        {"question": "How did he come in?", "answers": ["through the chimney"], "passage": WOLF},
    ]
    train = jsonl(tmp_path / "train.jsonl", *lines)
    prepared = prepare("questions", tmp_path / "data", "--train", train, "--valid", train, "--max-length", 5)
    assert prepared.splits["train"]["kept"] == 1 and prepared.splits["valid"]["kept"] == 2
    assert list(read_lines(tmp_path / "data" / "bin" / "span" / "valid.txt")) == ["0 0 1", "0 -1 -1"]
    assert list(read_lines(tmp_path / "data" / "tokens" / "train.passage")) == ["a wolf came to the"]
    prepare("questions", tmp_path / "short", "--train", train, "--valid", train, "--max-answer", 2)
    assert list(read_lines(tmp_path / "short" / "bin" / "span" / "valid.txt")) == ["0 0 1", "0 -1 -1"]


# NarrativeQA's files that are not whole


def until(text: str, part: str) -> str:
    return text[: text.index(part)]


def test_files_that_were_cut_short(tmp_path: Path) -> None:
    folder = narrativeqa(tmp_path / "narrativeqa")
    whole = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.csv")}
    summaries, asked = folder / "third_party/wikipedia/summaries.csv", folder / "qaps.csv"
    for path, content, message in (
        (
            summaries,
            whole[summaries][:-2] + "\n",
            "summaries.csv, line 8: not quoted as CSV is .*; fetch the file again",
        ),
        (
            summaries,
            until(whole[summaries], "wolf,"),
            "summaries.csv: nothing of 1 of the 3 documents of .*, such as wolf; fetch",
        ),
        (asked, until(whole[asked], " the chimney\n"), "qaps.csv: the file ends within a line; fetch the file again"),
        (asked, until(whole[asked], "wolf,"), "qaps.csv: nothing of 1 of the 3 documents"),
        (folder / "documents.csv", "doc\n", "documents.csv, line 1: there is no column 'document_id'"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            prepare("narrativeqa", tmp_path / "data", "--input", folder)
        path.write_text(whole[path], encoding="utf-8")
    asked.unlink()
    with pytest.raises(InputError, match="qaps.csv: no such file"):
        prepare("narrativeqa", tmp_path / "data", "--input", folder)


# The generated set


def test_generated_passages() -> None:
    """Every answer lies where it is said to; the same seed gives the same, and no question answers itself."""
    made = list(generated(50, (1, 0)))
    assert made == list(generated(50, (1, 0))) != list(generated(50, (1, 1)))
    for passage in made:
        for question in passage.questions:
            [answer], start = question.answers, question.start
            assert start is not None and passage.text[start : start + len(answer)] == answer
            assert answer not in question.text
    assert len({question.text for passage in made for question in passage.questions}) > 80


# Records


def test_references_of_several_lengths() -> None:
    assert references_of([["a"], ["b", "c"]]).text == [["a", "b"], ["a", "c"]]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"tokenizer": "jieba"}, "unknown tokenizer"),
        ({"max_answer": 0}, "max-answer is 0"),
        ({"dictionary_size": 4}, "has no words"),
        ({"valid_share": 1.0}, "valid-share is 1.0"),
    ],
)
def test_choices_that_make_no_sense(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ReadingPreparation(data_set="questions", **choice)
