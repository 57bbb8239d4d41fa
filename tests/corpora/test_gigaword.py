"""Gigaword headlines: which files are taken, what becomes of ``unk``, and input that cannot be used."""

from __future__ import annotations

import gzip
import sys
import tarfile
from pathlib import Path

import pytest

from fairseq_plugins.corpora import gigaword
from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.errors import InputError
from tests.commands import CHECKOUT, run_command

ARTICLES = ["police in #### cities killed unk men .", "stocks rose #.# percent in tokyo .", "rain fell in unk ."]
TITLES = ["police kill unk", "tokyo stocks rise", "rain falls"]


def write_set(folder: Path, **changed: bytes | None) -> Path:
    """A tiny set under the usual names; ``train_article=...`` puts other bytes in a file's place, None removes it."""
    train = [line for _ in range(4) for line in ARTICLES], [line for _ in range(4) for line in TITLES]
    files = {
        "train/train.article.txt": train[0],
        "train/train.title.txt": train[1],
        "train/valid.article.filter.txt": ARTICLES,
        "train/valid.title.filter.txt": TITLES,
        "Giga/input.txt": ["floods in UNK kill ## ."],
        "Giga/task1_ref0.txt": ["floods kill ##"],
        "DUC2004/input.txt": ["a summit in unk ."],
        "DUC2004/task1_ref0.txt": ["summit in unk"],
    }
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        key = path.name.removesuffix(".txt").replace(".", "_")
        content = changed.get(key, "".join(line + "\n" for line in lines).encode())
        if content is not None:
            path.write_bytes(content)
    return folder


def prepare(tmp_path: Path, *options: object, status: int = 0, source: Path | None = None):
    command = [CHECKOUT / "scripts" / "prepare_gigaword.sh", "--input", str(source or tmp_path / "sumdata")]
    command += ["--workers", "1", "--output", str(tmp_path / "out"), *map(str, options)]
    return run_command(command, status=status, PYTHON=sys.executable)


def error_of(finished) -> str:
    lines = finished.stderr.splitlines()
    assert not any(line.startswith("Traceback") for line in lines)
    (error,) = [line for line in lines if line.startswith("error: ")]
    return error.removeprefix("error: ")


@pytest.mark.system
def test_from_text_to_numbers(tmp_path: Path) -> None:
    write_set(tmp_path / "sumdata")
    finished = prepare(tmp_path, "--words", 12)
    assert "train has 12 pairs and the full set 3,803,957: not comparable" in finished.stdout
    preparation = PairsPreparation.load(tmp_path / "out")
    assert preparation.metric == "rouge"
    assert preparation.dictionary_sizes == {"article": 12, "title": 12}, "8 words and padding to a multiple of 8"
    tokens, words = tmp_path / "out" / "tokens", tmp_path / "out" / "bpe"
    assert (tokens / "valid.title").read_text().splitlines() == TITLES, "what is scored stays as it is"
    assert (words / "valid.title").read_text().splitlines()[0] == "police kill <unk>"
    assert (words / "test.article").read_text() == "floods in <unk> kill ## .\n"
    dictionary = (tmp_path / "out" / "bin" / "dict.article.txt").read_text()
    assert "unk" not in dictionary
    assert "#" in dictionary
    assert preparation.encode_source("rain in unk , UNK and <unk>") == "rain in <unk> , <unk> and <unk>"
    assert preparation.decode_target("police kill <unk>") == "police kill unk"


@pytest.mark.system
def test_dictionaries(tmp_path: Path) -> None:
    write_set(tmp_path / "sumdata")
    finished = prepare(tmp_path, "--joined-dictionary")
    assert "note: article has 24 types, not 30,000: the training text has no more" in finished.stdout
    bin_folder = tmp_path / "out" / "bin"
    assert (bin_folder / "dict.article.txt").read_bytes() == (bin_folder / "dict.title.txt").read_bytes()
    # For --replace-unk.
    assert (bin_folder / "test.article-title.article").read_text() == "floods in <unk> kill ## .\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bpe-size", "45"], "--bpe-size 45 has no effect with --bpe none: leave it out, or give a --bpe"),
        (
            ["--bpe", "sentencepiece", "--words", "12"],
            "--words 12 has no effect with --bpe sentencepiece: give --bpe-si",
        ),
    ],
)
def test_sizes_without_effect(options: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gigaword.main(["--input", "absent", "--output", "out", *options])


@pytest.mark.system
def test_sentencepiece(tmp_path: Path) -> None:
    write_set(tmp_path / "sumdata")
    prepare(tmp_path, "--bpe", "sentencepiece", "--bpe-size", 45)
    preparation = PairsPreparation.load(tmp_path / "out")
    assert preparation.decode_target(preparation.encode_target(TITLES[0])) == TITLES[0]


@pytest.mark.system
def test_archive_packed_files_and_other_references(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "sumdata")
    for path in (folder / "train").glob("train.*"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    with tarfile.open(tmp_path / "sumdata.tgz", "w:gz") as tar:
        tar.add(folder, "sumdata")
    (tmp_path / "second.txt").write_text("a summit\n")
    duc = folder / "DUC2004"
    test = f"{duc / 'input.txt'},{duc / 'task1_ref0.txt'},{tmp_path / 'second.txt'}"
    prepare(tmp_path, "--test", test, source=tmp_path / "sumdata.tgz")
    preparation = PairsPreparation.load(tmp_path / "out")
    assert preparation.origin["archive"] == "sumdata.tgz"
    assert preparation.splits["test"]["references"] == 2
    assert (tmp_path / "out" / "tokens" / "test.ref1.title").read_text() == "a summit\n"


@pytest.mark.system
def test_what_is_dropped_is_counted(tmp_path: Path) -> None:
    articles = "\ufeff".encode() + b"one two three\r\n\r\nfour five\r\n" + b"x " * 30 + b"\r\n"
    write_set(tmp_path / "sumdata", train_article=articles, train_title=b"one\ntwo\nfour\nx\n")
    finished = prepare(tmp_path, "--max-length", 20)
    assert "train: 2 pairs (dropped: 1 too short, 1 too long)" in finished.stdout
    assert (tmp_path / "out" / "tokens" / "train.article").read_text() == "one two three\nfour five\n"


@pytest.mark.system
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"train_title": None}, "train.article.txt is there, but not its other side, train.title.txt"),
        ({"train_title": b"one\n"}, "has 12 lines and"),
        ({"valid_article_filter": None, "valid_title_filter": None}, "holds no valid.article.filter.txt and"),
        ({"train_article": b"a\nb\rc\r"}, "train.article.txt, line 2: a carriage return within the line; convert"),
        ({"train_article": b"caf\xe9\n" * 12}, "line 1: not UTF-8"),
        ({"valid_title_filter": b""}, "valid.title.filter.txt is empty"),
    ],
)
def test_input_that_cannot_be_used(changed: dict[str, bytes | None], message: str, tmp_path: Path) -> None:
    write_set(tmp_path / "sumdata", **changed)
    assert message in error_of(prepare(tmp_path, status=1))
    assert not (tmp_path / "out").exists()


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    assert "no such file or folder" in error_of(prepare(tmp_path, status=1))
    (tmp_path / "broken.tgz").write_bytes(b"no archive")
    assert "not a whole archive" in error_of(prepare(tmp_path, status=1, source=tmp_path / "broken.tgz"))
    write_set(tmp_path / "sumdata")
    assert "at least one file of titles" in error_of(prepare(tmp_path, "--test", "articles", status=1))
    assert "dictionary-size is 0: it must be positive" in error_of(prepare(tmp_path, "--words", 0, status=1))
    write_set(tmp_path / "sumdata" / "again")
    with pytest.raises(InputError, match="holds train.article.txt several times"):
        gigaword.find(tmp_path / "sumdata", "train")
