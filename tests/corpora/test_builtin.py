"""The built-in corpora: they are written whole, where nothing is lost, and an installed copy has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_plugins.corpora import builtin
from fairseq_plugins.errors import InputError
from tests.commands import CHECKOUT, run_command

TEXTS = Path("fairseq_plugins", "corpora", "builtin_texts")
SIZES = {"train": 12000, "valid": 500, "test": 500}


def test_the_command_writes_a_corpus(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fairseq_plugins.corpora.builtin", "--task", "translation"]
    finished = subprocess.run([*command, "--output", tmp_path / "text"], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines() == [
        f"{tmp_path}/text: 12000 train, 500 valid, 500 test",
        "de: 1141 types, 13.2 tokens a line",
        "en: 777 types, 12.6 tokens a line",
        "word for word with the lexicon: 27.9 BLEU on test",
    ]
    files = {path.name: path.read_bytes().decode("utf-8") for path in (tmp_path / "text").iterdir()}
    assert files == builtin.read("translation")
    lines = {name: text.count("\n") for name, text in files.items()}
    pairs = {f"{name}.{side}": size for name, size in SIZES.items() for side in ("de", "en")}
    assert lines == {**pairs, "test.word_for_word.en": 500}


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
    assert there == here == {f"{task}.{ending}" for task in builtin.TASKS for ending in ("tar.xz", "txt")}
