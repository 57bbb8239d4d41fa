"""Running text: what becomes of lines, words and characters, and input that cannot be used."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_plugins.corpora.ptb import read_text, set_files
from fairseq_plugins.corpora.running_text import SPACE, RunningTextPreparation, RunningTextRun
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from tests.commands import CHECKOUT, run_command

TRAIN = " the cat saw <unk> \n the dog saw N cats \n\n a cat \n"
VALID = "the cat ran\n"
TEST = "a dog saw the zebra"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    for name, text in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def no_binarising(monkeypatch: pytest.MonkeyPatch) -> None:
    def write_bin(run: RunningTextRun, folder: Path) -> str:
        (folder / "bin").mkdir()
        (folder / "bin" / "dict.txt").write_text("word 1\n")
        return "none"

    monkeypatch.setattr(RunningTextRun, "_write_bin", write_bin)


def prepare(folder: Path, *options: object, status: int = 0):
    command = [CHECKOUT / "scripts" / "prepare_text.sh", "--train", folder / "train.txt"]
    command += ["--valid", folder / "valid.txt", "--test", folder / "test.txt", "--output", folder / "out"]
    return run_command([*map(str, command), "--workers", "1", *map(str, options)], status=status, PYTHON=sys.executable)


def run(folder: Path, **choices: object) -> RunningTextPreparation:
    inputs = {split: folder / f"{split}.txt" for split in ("train", "valid", "test")}
    return RunningTextRun(RunningTextPreparation(**choices), inputs, folder / "out").prepare()


@pytest.mark.system
def test_from_text_to_numbers(texts: Path) -> None:
    prepare(texts)
    data = PreparedData.load(texts / "out")
    splits = data.preparation.splits
    assert {name: splits[name]["tokens"] for name in splits} == {"train": 11 + 4, "valid": 3 + 1, "test": 5 + 1}
    assert splits["train"]["unknown"] == 1, "what the text itself calls unknown"
    assert splits["test"]["unknown"] == 1, "zebra"
    words = [line.split()[0] for line in (texts / "out" / "bin" / "dict.txt").read_text().splitlines()]
    assert sorted(words) == ["N", "a", "cat", "cats", "dog", "saw", "the"], "as many rows as words, and none made up"
    assert data.preparation.dictionary_sizes == {"text": 7 + 4}
    assert (texts / "out" / "tokens" / "train.txt").read_text().splitlines()[2] == "", "an empty line is a line's end"
    assert data.arguments()[0] == str(texts / "out" / "bin")
    assert prepare(texts).stdout.endswith("is up to date\n")


@pytest.mark.system
def test_most_frequent_words(texts: Path) -> None:
    said = prepare(texts, "--words", 7, "--metric", "bleu").stdout
    assert said.startswith("note: 'bleu' is no metric of running text here: an extension has to define it\n")
    assert len((texts / "out" / "bin" / "dict.txt").read_text().splitlines()) == 3


@pytest.mark.usefixtures("no_binarising")
def test_characters(texts: Path) -> None:
    (texts / "valid.txt").write_text("the cat\n")
    (texts / "test.txt").write_text("  cats  saw \n")
    preparation = run(texts, units="characters", unknown_words=[], keeps_spaces=True, metric="bits_per_character")
    assert preparation.splits["test"]["tokens"] == 12 + 1
    written = f"{SPACE} {SPACE} c a t s {SPACE} {SPACE} s a w {SPACE}"
    assert (texts / "out" / "tokens" / "test.txt").read_text() == written + "\n"
    assert preparation.decode(written) == "  cats  saw "
    without = RunningTextPreparation(units="characters", unknown_words=[])
    assert without.encode("  cats\tsaw ") == f"c a t s {SPACE} s a w", "as in Penn Treebank"


@pytest.mark.system
def test_fairseq_reads_all_characters(texts: Path) -> None:
    (texts / "train.txt").write_text(" the  cat ran\n  \n\na dog swz\n")
    (texts / "test.txt").write_text("  a dog \n")
    prepare(texts, "--characters")
    data = PreparedData.load(texts / "out")
    splits = data.preparation.splits
    assert {name: splits[name]["tokens"] for name in splits} == {"train": 24 + 4, "valid": 11 + 1, "test": 8 + 1}
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(texts / "out" / "bin" / "dict.txt"))
    for split in splits:
        lines = data_utils.load_indexed_dataset(str(texts / "out" / "bin" / split), dictionary)
        read = [data.preparation.decode(dictionary.string(line)) for line in lines]
        assert read == (texts / f"{split}.txt").read_text().removesuffix("\n").split("\n")


@pytest.mark.usefixtures("no_binarising")
@pytest.mark.parametrize(
    ("changed", "choices", "message"),
    [
        ({"valid": "the cät\n"}, {"units": "characters", "unknown_words": []}, "valid.txt, line 1: the character 'ä'"),
        ({"train": "a b\na\tb\n"}, {"units": "characters", "keeps_spaces": True}, r"train.txt, line 2: .* U\+0009"),
        ({"valid": "a\u00a0b\n"}, {"units": "characters", "keeps_spaces": True}, r"valid.txt, line 1: .* U\+00A0"),
        ({"train": f"a{SPACE}b\n"}, {"units": "characters"}, r"train.txt, line 1: .* U\+2581 .*write it differently"),
        ({}, {"keeps_spaces": True}, "spaces are kept among characters that no tokenizer has changed"),
        ({"train": "a\nb </s> c\n"}, {}, "train.txt, line 2: '</s>' is a symbol of fairseq's own"),
        ({"test": ""}, {}, "test.txt is empty"),
        ({"train": "a b\rb c\r"}, {}, "train.txt, line 1: carriage returns within the lines, as if they ended them"),
        ({}, {"dictionary_size": 4}, "a dictionary of 4 types has no words"),
        ({}, {"units": "syllables"}, "unknown units 'syllables'"),
    ],
)
def test_bad_input(texts: Path, changed: dict[str, str], choices: dict[str, object], message: str) -> None:
    for name, text in changed.items():
        (texts / f"{name}.txt").write_text(text, encoding="utf-8", newline="")
    with pytest.raises(InputError, match=message):
        run(texts, **choices)
    assert not (texts / "out").exists()


@pytest.mark.parametrize("choices", [{}, {"units": "characters"}])
def test_a_word_is_one_word_however_its_accents_are_typed(choices: dict[str, object]) -> None:
    """But where characters are those of the text itself, which comes back as it was."""
    preparation = RunningTextPreparation(**choices)
    assert preparation.encode("cafe\u0301 a") == preparation.encode("caf\u00e9 a")
    assert preparation.decode(preparation.encode("cafe\u0301 a")) == "caf\u00e9 a"


def test_words_of_characters(texts: Path) -> None:
    finished = prepare(texts, "--characters", "--words", 10, status=1)
    assert finished.stderr == "error: --words goes with words: of characters the dictionary holds all\n"


LINES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"], include_characters=" ", exclude_characters=SPACE))


@given(LINES)
def test_characters_come_back(line: str) -> None:
    preparation = RunningTextPreparation(units="characters", unknown_words=[], keeps_spaces=True)
    preparation.check("line 1", line)
    tokens = preparation.encode(line)
    assert tokens.split() == tokens.split(" ") or not line, "as fairseq splits it"
    assert len(tokens.split()) == len(line)
    assert preparation.decode(tokens) == line


@given(st.text())
def test_characters_come_back_or_are_refused(line: str) -> None:
    preparation = RunningTextPreparation(units="characters", unknown_words=[], keeps_spaces=True)
    try:
        preparation.check("line 1", line)
    except InputError:
        assert SPACE in line or line.replace(" ", "").split() != [line.replace(" ", "")]
    else:
        assert preparation.decode(" ".join(preparation.encode(line).split())) == line


def test_penn_treebank_of_words_and_of_characters(tmp_path: Path) -> None:
    (tmp_path / "ptb.train.txt").write_text(" aer banknote <unk> \n mr. N \n")
    characters = "a e r _ b a n k n o t e _ < u n k > \n m r . _ N \n "
    for split in ("valid", "test"):
        (tmp_path / f"ptb.char.{split}.txt.gz").write_bytes(gzip.compress(characters.encode()))
    files = set_files(tmp_path, characters=True)
    names = ["ptb.train.txt", "ptb.char.valid.txt.gz", "ptb.char.test.txt.gz"]
    assert [path.name for path in files.values()] == names
    encode = RunningTextPreparation(units="characters", unknown_words=[]).encode
    of_words, of_characters = ([encode(line) for line in read_text(files[split])] for split in ("train", "valid"))
    assert of_words == of_characters
    with pytest.raises(InputError, match="there is none of ptb.valid.txt, ptb.valid.txt.gz"):
        set_files(tmp_path, characters=False)
    (tmp_path / "ptb.char.test.txt").write_text("a b\na bc\n")
    with pytest.raises(InputError, match="ptb.char.test.txt, line 2: single characters"):
        list(read_text(tmp_path / "ptb.char.test.txt"))
