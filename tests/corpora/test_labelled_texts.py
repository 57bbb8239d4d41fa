"""Labelled texts: what is written, what is held out, and input that cannot be used."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairseq_plugins import command
from fairseq_plugins.corpora.dictionary import word_entries
from fairseq_plugins.corpora.labelled_texts import LabelledTextsPreparation, LabelledTextsRun
from fairseq_plugins.corpora.text_data_sets import REVIEWS, read_reviews
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines

ROWS = [("Good dog!", "yes"), ("Bad  dog.", "no"), ("A cat", "no"), ("Some cats", "yes"), ("good cats", "yes")]


@pytest.fixture(autouse=True)
def no_binarising(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq-preprocess takes seconds; tests of whole commands run it."""

    def write_bin(run: LabelledTextsRun, folder: Path, *_: object) -> list[str]:
        for name in run.preparation.dictionaries():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("word 1\n", encoding="utf-8")
        return []

    monkeypatch.setattr(LabelledTextsRun, "_write_bin", write_bin)


def table(path: Path, rows: Sequence[Sequence[str]], header: Sequence[str] = ("text", "label")) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]), encoding="utf-8")
    return path


def run(name: str, *arguments: object) -> LabelledTextsPreparation:
    """Prepares in this process; returns the record."""
    words = [str(argument) for argument in arguments]
    command.run(["prepare", name, *words, "--workers", "1"])
    return LabelledTextsPreparation.load(words[words.index("--output") + 1])


def lines(path: Path) -> list[str]:
    return list(read_lines(path))


def test_a_table_with_quoted_fields(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    # The last one is longer than Python's csv takes by itself.
    long = "long " * 30_000 + "text"
    rows = [('"He said ""no"""', "no"), ('"A tab\tin it"', "yes"), ("Plain text", "no"), ('"Two\nlines"', "yes")]
    rows += [(f'"{long}"', "no")]
    train = table(tmp_path / "train.tsv", [*rows, *ROWS])
    options = ["--train", train, "--text", "text", "--label", "label", "--valid-share", 0.2, "--tokenizer", "none"]
    run("labelled_texts", *options, "--quoted", "--output", tmp_path / "quoted")
    assert "warning" not in capsys.readouterr().out
    texts = [*lines(tmp_path / "quoted/raw/train.input0"), *lines(tmp_path / "quoted/raw/valid.input0")]
    assert {'He said "no"', "A tab in it", "Plain text", "Two lines", long} < set(texts)
    table(train, [rows[0], rows[2], ('"A quotation"', "yes"), *ROWS])
    run("labelled_texts", *options, "--output", tmp_path / "plain")
    [warning] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning")]
    assert "line 2: a field between quotation marks, as in CSV (1 rows in all have some)" in warning
    assert warning.endswith("--quoted takes them off")
    table(train, [('"He said "no', "no"), *ROWS])
    with pytest.raises(InputError, match="train.tsv, line 2: not quoted as CSV is .*; leave out --quoted"):
        run("labelled_texts", *options, "--quoted", "--output", tmp_path / "damaged")


def test_a_word_of_a_data_set_is_one_word_however_its_accents_are_typed(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / name).write_text("NUM:dist a cafe\u0301\nHUM:ind caf\u00e9 b\n" * 6, encoding="utf-8")
    files = ["--train", tmp_path / "train", "--test", tmp_path / "test"]
    preparation = run("trec", *files, "--output", tmp_path / "out")
    assert lines(tmp_path / "out/tokens/test.input0")[:2] == ["a caf\u00e9", "caf\u00e9 b"]
    assert preparation.encode("a cafe\u0301") == "a caf\u00e9"


def test_symbols_of_fairseqs_own_are_unknown_in_new_text() -> None:
    preparation = LabelledTextsPreparation(texts=["text"], tokenizer="none")
    assert preparation.encode("a <pad> </s>") == "a <unk> <unk>", "as padding it would not be read"
    assert preparation.encode_given("a <pad>") == "a <pad>", "which is refused, with its place"


def test_a_pipe_is_no_table(tmp_path: Path) -> None:
    """As a process substitution is one; a second reader of it would wait for ever, or find nothing."""
    os.mkfifo(tmp_path / "train.tsv")
    with pytest.raises(InputError, match="train.tsv: a pipe, which is empty after .*; write it into a file"):
        run(
            *("labelled_texts", "--train", tmp_path / "train.tsv", "--text", 1, "--label", 2),
            *("--output", tmp_path / "out"),
        )


@pytest.mark.parametrize("given", ["raw", "tokens"])
def test_accents_are_composed_in_training_and_in_new_text(given: str, tmp_path: Path) -> None:
    train = table(tmp_path / "train.tsv", [("cafe\u0301", "yes"), ("caf\u00e9", "yes"), *ROWS])
    options = ["--train", train, "--text", "text", "--label", "label", "--valid-share", 0.2, "--given", given]
    prepared = run("labelled_texts", *options, "--min-count", 1, "--output", tmp_path / "out")
    words = [line.split()[0] for line in lines(tmp_path / "out/dictionary/text.txt")]
    assert "caf\u00e9" in words and "cafe\u0301" not in words
    assert prepared.encode("cafe\u0301") == "caf\u00e9"


def test_a_byte_order_mark_makes_no_class_of_its_own(tmp_path: Path) -> None:
    """Two files that begin with one, joined by ``cat``."""
    text = "".join(f"{label}\t{text}\n" for text, label in ROWS)
    train = tmp_path / "train.tsv"
    train.write_text(f"\ufeff{text}\ufeff{text}", encoding="utf-8")
    prepared = run(
        *("labelled_texts", "--train", train, "--text", 2, "--label", 1, "--output", tmp_path / "out"),
    )
    assert prepared.labels == ["no", "yes"]


def test_a_table(tmp_path: Path) -> None:
    train = table(tmp_path / "train.tsv", ROWS)
    test = table(tmp_path / "test.tsv", [("Dogs & cats", "no")])
    options = ["--train", train, "--test", test, "--text", "text", "--label", "label", "--valid-share", 0.2]
    prepared = run("labelled_texts", *options, "--lowercase", "--output", tmp_path / "out")
    assert prepared.labels == ["no", "yes"]
    assert [(name, facts["kept"]) for name, facts in prepared.splits.items()] == [
        ("train", 4),
        ("test", 1),
        ("valid", 1),
    ]
    kept = lines(tmp_path / "out/raw/train.input0") + lines(tmp_path / "out/raw/valid.input0")
    assert sorted(kept) == sorted(" ".join(text.split()) for text, _ in ROWS), "every example is in one set"
    assert lines(tmp_path / "out/tokens/test.input0") == ["dogs & cats"]
    assert lines(tmp_path / "out/dictionary/label.txt") == [
        f"{label} {lines(tmp_path / 'out/raw/train.label').count(label)}" for label in ("no", "yes")
    ]
    assert prepared.encode("Good  dogs!") == "good dogs !"
    again = run("labelled_texts", *options, "--lowercase", "--output", tmp_path / "out")
    assert again.splits == prepared.splits
    other = run("labelled_texts", *options, "--seed", 5, "--output", tmp_path / "other")
    assert other.seed == 5


def test_json_lines_columns_by_number_pairs_and_tags(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    rows = [{"a": "x y", "b": "z", "c": label, "ta": "N V", "tb": "N"} for label in ("p", "q", "p")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = ["--train", path, "--valid", path, "--format", "jsonl", "--text", "a", "--text", "b", "--label", "c"]
    prepared = run("labelled_texts", *options, "--tags", "ta", "--tags", "tb", "--output", tmp_path / "pairs")
    assert prepared.inputs == ["input0", "input1"] and prepared.tags == ["tags0", "tags1"]
    assert lines(tmp_path / "pairs/tokens/valid.tags0") == ["N V"] * 3
    numbered = tmp_path / "numbered.tsv"
    numbered.write_text("yes\tone\nno\tone\nno\tone\n", encoding="utf-8")
    prepared = run("labelled_texts", "--train", numbered, "--text", 2, "--label", 1, "--output", tmp_path / "numbered")
    assert prepared.splits["train"]["read"] == 3


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (ROWS, [("x", "up")], "test.tsv, line 2: nothing in the training set has the label 'up'; there are no, yes"),
        (ROWS, [("x", "yess")], "did you mean 'yes'?"),
        ([*ROWS, ("  ", "no")], ROWS, "train.tsv, line 7: the text is empty"),
        ([*ROWS, ("alone",)], ROWS, "train.tsv, line 7: the column 'label' is missing: the line has 1 columns, not 2"),
        ([*ROWS, ("a", "tab", "no")], ROWS, "train.tsv, line 7: the line has 3 columns, and the first line 2; a text"),
        ([*ROWS, ("x", "")], ROWS, "train.tsv, line 7: the label '' is no word"),
        ([(text, "one") for text, _ in ROWS], [("x", "one")], "every training text has the label 'one'"),
        (ROWS, [("a <pad> b", "no")], "test.tsv, line 2: '<pad>' is a symbol of fairseq's own: write it differently"),
        ([*ROWS, ("a </s>", "no")], ROWS, "train.tsv, line 7: '</s>' is a symbol of fairseq's own"),
        ([*ROWS, ("a", "<unk>")], ROWS, "train.tsv, line 7: the label '<unk>' is a symbol of fairseq's own"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, train: list, test: list, message: str) -> None:
    files = ["--train", table(tmp_path / "train.tsv", train), "--test", table(tmp_path / "test.tsv", test)]
    files += ["--valid", tmp_path / "train.tsv"]
    with pytest.raises(InputError) as raised:
        options = [*files, "--text", "text", "--label", "label", "--tokenizer", "none"]
        run("labelled_texts", *options, "--output", tmp_path / "out")
    assert message in str(raised.value) and "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists(), "nothing is left half written"


def test_held_out_texts_that_are_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = table(tmp_path / "train.tsv", [("A  dog", "no"), ("a cat", "yes"), ("a cow", "yes")])
    test = table(tmp_path / "test.tsv", [("a dog", "no"), ("a cat", "no"), ("a pig", "yes")])
    options = ["--train", train, "--valid", test, "--text", "text", "--label", "label", "--tokenizer", "none"]
    prepared = run("labelled_texts", *options, "--lowercase", "--output", tmp_path / "out")
    assert prepared.splits["valid"]["in_training"] == 2
    warning = "warning: 2 of the 3 texts of valid are in the training set too, word for word, 1 of them with the same"
    assert warning in capsys.readouterr().out
    assert run("labelled_texts", *options, "--output", tmp_path / "cased").splits["valid"]["in_training"] == 1


def test_other_bad_input(tmp_path: Path) -> None:
    train, out = table(tmp_path / "train.tsv", ROWS), tmp_path / "out"

    def error_of(*options: object) -> str:
        with pytest.raises(InputError) as raised:
            run("labelled_texts", "--train", train, *options, "--output", out)
        return str(raised.value)

    assert "train.tsv, line 1: there is no column 'labels'; did you mean 'label'?" in error_of(
        "--text", "text", "--label", "labels"
    )
    twice = tmp_path / "twice.tsv"
    table(twice, [("a", "x", "b")], ("text", "label", "text"))
    message = "twice.tsv, line 1: 2 columns are called 'text'; give the columns' numbers"
    assert message in error_of("--train", twice, "--text", "text", "--label", "label")
    assert "line 1: not JSON" in error_of("--text", "text", "--label", "label", "--format", "jsonl")
    assert "leave none for training" in error_of("--text", "text", "--label", "label", "--valid-share", "0.99")
    assert "give --text twice" in error_of("--text", "text", "--label", "label", "--group", "label")
    pairs = ["--text", "text", "--text", "text", "--label", "label", "--group", "label", "--tags", "a", "--tags", "b"]
    assert error_of(*pairs) == "--group with --tags: what ranks candidates reads no tags; leave one of them out"
    assert error_of("--text", "1", "--label", "0") == "the columns 1, 0: the first column is 1, not 0"
    tagged = table(tmp_path / "train.tsv", [("a b", "x", "N"), ("a", "y", "N")], ("text", "label", "tags"))
    assert tagged == train
    message = error_of("--text", "text", "--label", "label", "--tags", "tags", "--valid", train)
    assert "train.tsv, line 2: 1 tags for 2 tokens; every token has one tag" in message
    table(train, [("a b", "x", "N <s>"), ("a", "y", "N")], ("text", "label", "tags"))
    message = error_of("--text", "text", "--label", "label", "--tags", "tags", "--valid", train)
    assert message == f"{train}, line 2: '<s>' is a symbol of fairseq's own: write it differently"
    table(train, ROWS)
    common = ["--text", "text", "--label", "label"]
    assert error_of(*common, "--words", 4) == "a dictionary of 4 types has no words: 4 are fairseq's own"
    assert error_of(*common, "--min-count", 9) == (
        "no word occurs 9 times in the training texts, so that all would be unknown: give a smaller --min-count"
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "null"), (["a"], "a list"), ({"a": 1}, "an object"), (float("nan"), "no number")]
)
@pytest.mark.parametrize("column", ["text", "label"])
def test_json_that_is_no_text(tmp_path: Path, column: str, value: object, shown: str) -> None:
    rows = [{"text": f"it is {label}", "label": label, "other": None} for label in (True, 1.5, 7, "no")]
    train, out = tmp_path / "train.jsonl", tmp_path / "out"
    options = ["--train", train, "--valid", train, "--format", "jsonl", "--text", "text", "--label", "label"]
    train.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert run("labelled_texts", *options, "--output", out).labels == ["1.5", "7", "no", "true"]
    rows[2][column] = value
    train.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(InputError, match=f"train.jsonl, line 3: '{column}' is {shown}: write a string or a number"):
        run("labelled_texts", *options, "--output", tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


def test_half_a_character(tmp_path: Path) -> None:
    """As in text of the web that was cut in the middle of an emoji."""
    train = tmp_path / "train.jsonl"
    train.write_text('{"text": "fine", "label": "a"}\n{"text": "fine \\ud83d", "label": "b"}\n', encoding="utf-8")
    options = ["--train", train, "--valid", train, "--format", "jsonl", "--text", "text", "--label", "label"]
    with pytest.raises(InputError, match=r"train.jsonl, line 2: 'text' has half a character, \\ud83d"):
        run("labelled_texts", *options, "--output", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_line_ends_of_classic_mac(tmp_path: Path) -> None:
    question = "NUM:dist How far is it ?\r"
    for name in "train", "test":
        (tmp_path / name).write_text(question * 9, encoding="utf-8", newline="")
    message = "train, line 1: carriage returns within the lines, as if they ended them"
    with pytest.raises(InputError, match=message):
        run("trec", "--train", tmp_path / "train", "--test", tmp_path / "test", "--output", tmp_path / "out")
    (tmp_path / "train").write_text("a fine one\tyes\r" * 9, encoding="utf-8", newline="")
    options = ["--train", tmp_path / "train", "--text", 1, "--label", 2]
    with pytest.raises(InputError, match=message):
        run("labelled_texts", *options, "--output", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_line_that_is_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = "NUM:dist wie groß\nHUM:ind für André\n".encode() * 6 + "NUM:dist für Andr\xe9\n".encode("latin-1")
    for name in "train", "test":
        (tmp_path / name).write_bytes(content)
    options = ["--train", tmp_path / "train", "--test", tmp_path / "test"]
    run("trec", *options, "--output", tmp_path / "out")
    texts = lines(tmp_path / "out/raw/test.input0")
    assert texts[0] == "wie groß" and texts[-1] == "für André"
    warning = f"warning: {tmp_path / 'test'}, line 13: not UTF-8, as 12 others are; it is taken for Latin-1"
    assert warning in capsys.readouterr().out
    (tmp_path / "test").write_bytes(content.replace(b"wie", b"w\0ie"))
    with pytest.raises(InputError, match="test, line 1: a NUL byte, which no text has"):
        run("trec", *options, "--output", tmp_path / "other")
    (tmp_path / "test").write_bytes("NUM:dist how far\n".encode("utf-16"))
    with pytest.raises(InputError, match="test: UTF-16 text; convert it to UTF-8"):
        run("trec", *options, "--output", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_questions_that_are_their_own_numbers(tmp_path: Path) -> None:
    header = ("q", "a", "y")
    rows = [(f"why  {question}", f"so {number}", str(number)) for question in range(20) for number in (0, 1)]
    train = table(tmp_path / "train.tsv", rows, header)
    options = ["--train", train, "--text", "q", "--text", "a", "--label", "y", "--group", "q", "--min-count", 1]
    run("labelled_texts", *options, "--output", tmp_path / "out")
    kept = lines(tmp_path / "out/raw/train.group")
    assert len(kept) == 36 and set(kept) < {f"why {question}" for question in range(20)}
    path = tmp_path / "train.jsonl"
    records = [{"q": "why", "a": a, "y": y, "id": f"1\n{number}"} for number, (_, a, y) in enumerate(rows)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    options = ["--train", path, "--valid", path, "--format", "jsonl", "--text", "q", "--text", "a", "--label", "y"]
    run("labelled_texts", *options, "--group", "id", "--output", tmp_path / "lines")
    assert lines(tmp_path / "lines/raw/train.group")[0] == "1 1"
    table(train, [*rows, ("why", "so", "1", "")], (*header, "id"))
    train.write_text(train.read_text().replace("\t0\n", "\t0\tx\n").replace("\t1\n", "\t1\tx\n"))
    options = ["--train", train, "--text", "q", "--text", "a", "--label", "y", "--group", "id", "--min-count", 1]
    with pytest.raises(InputError, match="train.tsv, line 42: the question has no number; write it or leave the line"):
        run("labelled_texts", *options, "--output", tmp_path / "wrong")


def ranked(questions: int, labels: Sequence[str] = ("0", "1")) -> list[tuple[str, ...]]:
    """Questions with three candidates each, in turns; every fifth has no right one."""
    wrong, right = labels
    return [
        (f"why {question}", f"so {question} {number}", right if number == 1 and question % 5 else wrong, f"q{question}")
        for number in range(3)
        for question in range(questions)
    ]


def test_whole_questions_are_held_out(tmp_path: Path) -> None:
    header = ("q", "a", "y", "g")
    train = table(tmp_path / "train.tsv", ranked(25), header)
    options = ["--train", train, "--text", "q", "--text", "a", "--label", "y", "--group", "g", "--min-count", 1]
    splits = {}
    for name, seed in ("out", 1), ("again", 1), ("other", 2):
        prepared = run("labelled_texts", *options, "--seed", seed, "--output", tmp_path / name)
        splits[name] = {split: lines(tmp_path / name / f"raw/{split}.group") for split in ("train", "valid")}
    groups = splits["out"]
    assert not set(groups["train"]) & set(groups["valid"])
    assert len(set(groups["valid"])) == 2 and len(set(groups["train"])) == 18, "a tenth of those with a right answer"
    assert all(numbers.count(group) == 3 for numbers in groups.values() for group in numbers)
    assert prepared.splits["valid"]["held_out"] == 6
    for split, numbers in groups.items():
        kept = lines(tmp_path / f"out/raw/{split}.input1")
        assert kept == [a for q, a, y, g in ranked(25) if g in numbers], "in the order of the file"
    assert splits["again"] == splits["out"] != splits["other"]

    def error_of(rows: list[tuple[str, ...]], *more: object) -> str:
        table(train, rows, header)
        with pytest.raises(InputError) as raised:
            run("labelled_texts", *options, *more, "--output", tmp_path / "wrong")
        return str(raised.value)

    assert error_of(ranked(25, ("no", "yes"))) == (
        f"{train}, line 2: the label 'no' is neither 1, of a candidate that answers its question, nor 0, of others"
    )
    assert error_of(ranked(1)) == (
        f"{train}: nothing to take as train: no question has a candidate of label 1, which answers it"
    )
    assert error_of(ranked(3)[:3], "--valid", train).startswith(f"{train}: nothing to take as train")
    assert error_of(ranked(4), "--valid-share", 0.9) == "3 of 3 questions for validation leave none for training"


def test_vectors_bring_words_of_held_out_texts(tmp_path: Path) -> None:
    train, vectors = table(tmp_path / "train.tsv", ROWS), tmp_path / "vectors.txt"
    test = table(tmp_path / "test.tsv", [("new words", "no")])
    vectors.write_text("new 1 2\nabsent 3 4\n", encoding="utf-8")
    options = ["--train", train, "--valid", train, "--test", test, "--text", "text", "--label", "label"]
    run("labelled_texts", *options, "--vectors", vectors, "--output", tmp_path / "out")
    words = [line.split()[0] for line in lines(tmp_path / "out/dictionary/text.txt")]
    assert "new" in words and "absent" not in words and "words" not in words
    assert "cats" in words, "with vectors, words that occur once are known"
    run("labelled_texts", *options, "--output", tmp_path / "learned")
    words = [line.split()[0] for line in lines(tmp_path / "learned/dictionary/text.txt")]
    assert "cats" in words and "Some" not in words, "a vector for unknown words is learned from rare ones"


def test_vectors_are_read_as_models_read_them(tmp_path: Path) -> None:
    """word2vec's first line is no word, and some words of GloVe hold spaces."""
    vectors, tokens = tmp_path / "vectors.txt", tmp_path / "tokens"
    vectors.write_text("3 2\nnew 1 2\n. . . 3 4\n", encoding="utf-8")
    tokens.write_text("3 new . at\n", encoding="utf-8")
    assert word_entries([], [tokens], 1, None, vectors) == [("new", 0)]
    vectors.write_text("new 1 2\nat 1\n", encoding="utf-8")
    with pytest.raises(InputError, match="vectors.txt, line 2: a vector of 1 numbers, but the first line's is 2"):
        word_entries([], [tokens], 1, None, vectors)


@pytest.mark.parametrize("has_tags", [False, True], ids=["ranking", "tags"])
def test_other_columns_are_another_preparation(tmp_path: Path, has_tags: bool) -> None:
    header = ("q", "a", "y", "y2", "g", "g2", "t", "t2", "u")
    values = [(q, a, y, str(1 - int(y)), g, f"other {g}", "N", "V", "N") for q, a, y, g in ranked(25)]
    rows = [(q.split()[0], a.split()[0], *rest) for q, a, *rest in values]
    train, out = table(tmp_path / "train.tsv", rows, header), tmp_path / "out"
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("so 1 2\n", encoding="utf-8")
    options = {"--train": train, "--label": "y", "--vectors": vectors, "--output": out}
    if not has_tags:
        options["--group"] = "g"

    def prepared(tags: str = "t2", **others: object) -> LabelledTextsPreparation:
        chosen = options | {f"--{name}": value for name, value in others.items()}
        more = ["--text", "q", "--text", "a", *(["--tags", "t", "--tags", tags] if has_tags else [])]
        return run("labelled_texts", *more, *(part for option in chosen.items() for part in option))

    prepared()
    record = (out / "preparation.json").read_bytes()
    prepared()
    of_kind = {"tag_columns": {"tags": "u"}, "label, tag_columns": {"label": "y2", "tags": "u"}}
    if not has_tags:
        of_kind = {"group": {"group": "g2"}, "label, group": {"label": "y2", "group": "g2"}}
    for name, others in {"label": {"label": "y2"}, **of_kind, "seed": {"seed": 5}}.items():
        with pytest.raises(InputError, match=rf"out: already prepared with different options \({name}\): remove it"):
            prepared(**others)
    assert (out / "preparation.json").read_bytes() == record
    vectors.write_text("so 3 4\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"out: already prepared with different options \(vectors_checksum\)"):
        prepared()


def test_trec(tmp_path: Path) -> None:
    questions = ["NUM:dist How far is it ?", "HUM:ind Who was Andr\xe9 ?"] * 6
    for name in "train", "test":
        (tmp_path / name).write_bytes("".join(line + "\n" for line in questions).encode("latin-1"))
    options = ["--train", tmp_path / "train", "--test", tmp_path / "test"]
    prepared = run("trec", *options, "--output", tmp_path / "out")
    assert prepared.labels == ["HUM", "NUM"] and prepared.splits["valid"]["kept"] == 1
    assert "who was andré ?" in lines(tmp_path / "out/tokens/test.input0")
    assert run("trec", *options, "--fine", "--output", tmp_path / "fine").labels == ["HUM:ind", "NUM:dist"]
    for name, same, other in ("out", [], ["--fine"]), ("fine", ["--fine"], []):
        run("trec", *options, *same, "--output", tmp_path / name)
        with pytest.raises(InputError, match=rf"{name}: already prepared with different options \(label\)"):
            run("trec", *options, *other, "--output", tmp_path / name)
    (tmp_path / "test").write_text("How far\n", encoding="utf-8")
    with pytest.raises(InputError, match="test, line 1: 'How' is no label such as NUM:dist"):
        run("trec", *options, "--output", tmp_path / "wrong")


def test_sst_and_reviews(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "train", "dev", "test":
        (tmp_path / f"stsa.fine.{name}").write_text("4 a good film .\n0 bad .\n", encoding="utf-8")
    prepared = run("sst", "--input", tmp_path, "--output", tmp_path / "sst")
    assert prepared.labels == ["0", "4"]
    assert prepared.encode('It isn\'t "good" (at all).') == "it is n't `` good '' -lrb- at all -rrb- ."
    reviewed = "".join(f"{number % 2}\tit 's review {number}\n" for number in range(260)).encode()
    (tmp_path / "books.task.train.gz").write_bytes(gzip.compress(reviewed))
    (tmp_path / "books.task.test").write_bytes(reviewed[:100].rsplit(b"\n", 1)[0])
    prepared = run("reviews", "--input", tmp_path, "--set", "books", "--output", tmp_path / "books")
    assert (prepared.splits["train"]["kept"], prepared.splits["valid"]["kept"]) == (60, 200)
    assert prepared.encode("It isn't (at all) good. No!") == "it is n't ( at all ) good . no !"
    # "sports" has such a line as published.
    (tmp_path / "sports_outdoors.task.train").write_bytes(reviewed + b"0\t\n")
    (tmp_path / "sports_outdoors.task.test").write_bytes(b"1\tIt 's review 5\n0\tit 's review 7\n0\tnew\n")
    capsys.readouterr()
    prepared = run("reviews", "--input", tmp_path, "--set", "sports", "--output", tmp_path / "sports")
    assert prepared.splits["train"]["read"] == 260
    in_training = [f"it 's review {number}" in lines(tmp_path / "sports/raw/train.input0") for number in (5, 7)]
    assert prepared.splits["test"]["in_training"] == sum(in_training)
    printed = capsys.readouterr().out
    assert "sports_outdoors.task.train, line 261: there is no text after the label '0'; the line is left out" in printed
    assert (f"{sum(in_training)} of the 3 texts of test are in the training set too" in printed) == any(in_training)
    (tmp_path / "MR.task.train").write_bytes(reviewed)
    (tmp_path / "MR.task.test").write_bytes(reviewed)
    whole = run("reviews", "--input", tmp_path, "--set", "mr", "--output", tmp_path / "mr")
    assert whole.encode("It isn't (at all) good.") == "it isn't ( at all ) good ."
    with pytest.raises(InputError, match="dvd.task.train: no such file, nor dvd.task.train.gz"):
        run("reviews", "--input", tmp_path, "--set", "dvd", "--output", tmp_path / "dvd")
    (tmp_path / "stsa.fine.test").write_text("4 good\n3\n", encoding="utf-8")
    with pytest.raises(InputError, match="stsa.fine.test, line 2: 'label text' was expected"):
        run("sst", "--input", tmp_path, "--output", tmp_path / "wrong")


def test_imdb_s_folders(tmp_path: Path) -> None:
    for split in "train", "test":
        for label in "pos", "neg":
            folder = tmp_path / "aclImdb" / split / label
            folder.mkdir(parents=True)
            for number in range(3):
                (folder / f"{number}_7.txt").write_text(f"A film.<br /><br />It is {label}", encoding="utf-8")
    prepared = run("imdb", "--input", tmp_path / "aclImdb", "--output", tmp_path / "out")
    assert prepared.labels == ["neg", "pos"]
    assert set(lines(tmp_path / "out/tokens/test.input0")) == {"a film . it is neg", "a film . it is pos"}
    again = run("imdb", "--input", tmp_path / "aclImdb", "--output", tmp_path / "out")
    assert again.splits == prepared.splits
    (tmp_path / "aclImdb").rename(tmp_path / "elsewhere")
    moved = run("imdb", "--input", tmp_path / "elsewhere", "--output", tmp_path / "out")
    assert moved.splits == prepared.splits, "where they are says nothing of the reviews"
    (tmp_path / "elsewhere/test/pos/1_7.txt").write_bytes(b"tr\xe8s bien")
    with pytest.raises(InputError, match="test/pos/1_7.txt: not UTF-8; fetch it again"):
        run("imdb", "--input", tmp_path / "elsewhere", "--output", tmp_path / "wrong")
    (tmp_path / "elsewhere/test/pos/1_7.txt").write_text(" ")
    with pytest.raises(InputError, match=f"{tmp_path / 'elsewhere/test/pos/1_7.txt'}: the review is empty"):
        run("imdb", "--input", tmp_path / "elsewhere", "--output", tmp_path / "wrong")
    with pytest.raises(InputError, match="train/neg: no folder of reviews there; give the folder aclImdb"):
        run("imdb", "--input", tmp_path, "--output", tmp_path / "wrong")


def test_answer_selection(tmp_path: Path) -> None:
    rows = [("q1", "a", "1"), ("q1", "b", "0"), ("q2", "c", "0"), ("q3", "d", "1")]
    for split in "train", "dev", "test":
        folder = tmp_path / "wikiqa" / split
        folder.mkdir(parents=True)
        columns = {"a.toks": 0, "b.toks": 1, "sim.txt": 2, "id.txt": 0}
        for name, column in columns.items():
            (folder / name).write_text("".join(row[column] + "\n" for row in rows), encoding="utf-8")
    prepared = run("answer_selection", "--input", tmp_path / "wikiqa", "--output", tmp_path / "out")
    assert prepared.is_ranking and prepared.metric == "ranking"
    assert lines(tmp_path / "out/raw/test.group") == ["q1", "q1", "q3"], "a question without a right answer is left out"
    run("answer_selection", "--input", tmp_path / "wikiqa", "--clean", "--output", tmp_path / "clean")
    assert lines(tmp_path / "clean/raw/test.group") == ["q1", "q1"]
    assert lines(tmp_path / "clean/raw/train.group") == ["q1", "q1", "q3"]
    header = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
    for split in "train", "dev", "test":
        text = header + "Q1\tHow?\tD1\tT\tD1-0\tSo.\t1\nQ1\tHow?\tD1\tT\tD1-1\tNot so.\t0\n"
        (tmp_path / f"WikiQA-{split}.tsv").write_text(text, encoding="utf-8")
    run("answer_selection", "--input", tmp_path, "--output", tmp_path / "published")
    assert lines(tmp_path / "published/tokens/test.input1") == ["so .", "not so ."]
    with pytest.raises(InputError, match="neither WikiQA-train.tsv nor a folder 'train' with a.toks"):
        run("answer_selection", "--input", tmp_path / "out", "--output", tmp_path / "wrong")


def test_entailment_takes_tokens_and_tags_of_parses(tmp_path: Path) -> None:
    parse = "(ROOT (S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (-LRB- -LRB-) (. .)))"
    pairs = [
        {"gold_label": label, "sentence1_parse": parse, "sentence2_parse": "(ROOT (NP (NN dog)))"}
        for label in ("entailment", "-", "neutral")
    ]
    for split in "train", "dev", "test":
        text = "".join(json.dumps(pair) + "\n" for pair in pairs)
        (tmp_path / f"snli_1.0_{split}.jsonl").write_text(text, encoding="utf-8")
    prepared = run("entailment", "--input", tmp_path, "--output", tmp_path / "out")
    assert prepared.labels == ["entailment", "neutral"] and prepared.splits["train"]["kept"] == 2
    assert lines(tmp_path / "out/tokens/test.input0")[0] == "the dog sleeps ( ."
    assert lines(tmp_path / "out/tokens/test.tags0")[0] == "DT NN VBZ -LRB- ."
    assert prepared.encode("The dog doesn't sleep.") == "the dog does n't sleep ."
    plain = run("entailment", "--input", tmp_path, "--no-tags", "--output", tmp_path / "plain")
    assert plain.has_tags is False and not (tmp_path / "plain/tokens/test.tags0").exists()
    with pytest.raises(InputError, match="one file of JSON lines for 'train' was expected"):
        run("entailment", "--input", tmp_path / "out", "--output", tmp_path / "wrong")


def test_a_record_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3 texts: an example has one text or two"):
        LabelledTextsPreparation(texts=["a", "b", "c"])
    with pytest.raises(InputError, match="unknown tokenizer 'mose'"):
        LabelledTextsPreparation(texts=["a"], tokenizer="mose")


@pytest.mark.parametrize("name", REVIEWS)
def test_published_reviews_are_read(name: str) -> None:
    folder = Path(__file__).resolve().parents[3] / "shared" / "data" / "amazon_reviews"
    if not folder.is_dir():
        pytest.skip("the published review sets (shared/data/amazon_reviews) are not here")
    for split, fewest in ("train", 1100), ("test", 300):
        [path] = folder.glob(f"{REVIEWS[name]}.task.{split}*")
        examples = list(read_reviews([path]))
        assert len(examples) > fewest and {example.label for example in examples} == {"0", "1"}
