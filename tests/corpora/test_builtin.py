"""The built-in corpora: they are written whole, where nothing is lost, and an installed copy has them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

from fairseq_plugins.corpora import builtin
from fairseq_plugins.errors import InputError
from tests.commands import CHECKOUT, run_command

TEXTS = Path("fairseq_plugins", "corpora", "builtin_texts")
SIZES = {"train": 15000, "valid": 500, "test": 500}


def test_the_command_writes_a_corpus(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fairseq_plugins.corpora.builtin", "--task", "translation"]
    finished = subprocess.run([*command, "--output", tmp_path / "text"], capture_output=True, text=True, check=True)
    files = {path.name: path.read_bytes().decode("utf-8") for path in (tmp_path / "text").iterdir()}
    assert files == builtin.read("translation")
    lines = {name: text.count("\n") for name, text in files.items()}
    pairs = {f"{name}.{side}": size for name, size in SIZES.items() for side in ("de", "en")}
    assert lines == {**pairs, "test.word_for_word.en": 500}
    sizes, german, english, baseline = finished.stdout.splitlines()
    assert sizes == f"{tmp_path}/text: 15000 train, 500 valid, 500 test"
    for line, side in (german, "de"), (english, "en"):
        sentences = [tokens(line) for split in SIZES for line in files[f"{split}.{side}"].splitlines()]
        types = len({token for sentence in sentences for token in sentence})
        assert line == f"{side}: {types} types, {sum(map(len, sentences)) / len(sentences):.1f} tokens a line"
    score = sacrebleu.corpus_bleu(files["test.word_for_word.en"].splitlines(), [files["test.en"].splitlines()]).score
    assert baseline == f"word for word with the lexicon: {score:.1f} BLEU on test"


def test_held_out_pairs_are_in_no_file_and_have_its_words() -> None:
    texts = builtin.read("translation")
    lines = {side: [texts[f"{split}.{side}"].splitlines() for split in SIZES] for side in ("de", "en")}
    sources = {line.removesuffix(".") for part in lines["de"] for line in part}
    pairs = builtin.held_out()
    assert [pair.source for pair in pairs if pair.source.removesuffix(".") in sources] == []
    kinds = [pair.kind for pair in pairs]
    assert kinds == [builtin.PLAIN] * 60 + ["other"] * 20
    assert all((len(pair.source.split()) <= 6) == (pair.kind == builtin.PLAIN) for pair in pairs)
    assert len({pair.source for pair in pairs}) == len(pairs)
    for side, texts_of_pairs in ("de", [pair.source for pair in pairs]), ("en", [pair.reference for pair in pairs]):
        assert set(tokens(" ".join(texts_of_pairs))) <= set(tokens(" ".join(lines[side][0])))


def tokens(text: str) -> list[str]:
    """Words and punctuation marks, in lower case."""
    return re.findall(r"[\w'-]+|[^\w\s]", text.lower())


def test_the_texts_are_small() -> None:
    folder = CHECKOUT / TEXTS
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000


def test_each_task_has_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "write", lambda task, folder: written.append((task, folder)))
    written: list[tuple[str, Path]] = []
    for task in builtin.TASKS:
        monkeypatch.setattr(sys, "argv", ["builtin", "--task", task, "--output", str(tmp_path)])
        builtin.main()
    assert written == [(task, tmp_path) for task in builtin.TASKS]


@pytest.mark.parametrize("task", builtin.COLUMNS)
def test_tables_have_the_columns(task: str) -> None:
    texts = builtin.read(task)
    assert sorted(texts) == ["test.tsv", "train.tsv", "valid.tsv"]
    for text in texts.values():
        rows = [line.split("\t") for line in text.splitlines()]
        assert tuple(rows[0]) == builtin.COLUMNS[task] and {len(row) for row in rows} == {len(rows[0])}


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    for _ in range(2):
        builtin.write("language_model", folder)
    assert sorted(path.name for path in folder.iterdir()) == ["test.txt", "train.txt", "valid.txt"]
    (folder / "thesis").write_text("the only copy", encoding="utf-8")
    with pytest.raises(InputError, match="corpus holds thesis, which is not of this corpus: name another folder"):
        builtin.write("language_model", folder)
    with pytest.raises(InputError, match="thesis is a file: name another folder for --output"):
        builtin.write("language_model", folder / "thesis")
    assert (folder / "thesis").read_text(encoding="utf-8") == "the only copy"


@pytest.mark.system
def test_an_installed_copy_has_its_texts(tmp_path: Path) -> None:
    # What setup.py writes beside itself goes elsewhere.
    command = ["python", "setup.py", "egg_info", "--egg-base", tmp_path, "build", "--build-base", tmp_path]
    run_command([*command, "--build-lib", tmp_path / "lib"], cwd=CHECKOUT)
    there, here = ({path.name for path in (root / TEXTS).iterdir()} for root in (tmp_path / "lib", CHECKOUT))
    assert (
        there
        == here
        == {builtin.HELD_OUT} | {f"{task}.{ending}" for task in builtin.TASKS for ending in ("tar.xz", "txt")}
    )
