"""The preparation scripts as a user runs them, from another folder."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation
from fairseq_plugins.versions import VERSION
from tests.commands import CHECKOUT, run_command, run_script
from tests.corpora.parallel_text import contents, sentences, write
from tests.corpora.test_iwslt14 import official_files, pack

OUTPUT = ("--output", "out")
PAIR = ("--src-lang", "de", "--tgt-lang", "en")
MISSING = {
    "prepare_answer_selection.sh": ((*OUTPUT, "--input", "absent"), "absent: neither WikiQA-train.tsv nor a folder"),
    "prepare_copy_memory.sh": ((*OUTPUT, "--length", "0"), "length is 0: it must be at least 1"),
    "prepare_entailment.sh": (
        (*OUTPUT, "--input", "absent"),
        "absent: one file of JSON lines for 'train' was expected",
    ),
    "prepare_fairytale_qa.sh": ((*OUTPUT, "--input", "absent"), "absent: no folder questions/train there"),
    "prepare_generated_passages.sh": ((*OUTPUT, "--passages", "9"), "--passages 9: it must be at least 10"),
    "prepare_generated_voices.sh": ((*OUTPUT, "--recordings", "0"), "--recordings 0: it must be at least 3"),
    "prepare_gigaword.sh": ((*OUTPUT, "--input", "absent"), "absent: no such file or folder"),
    "prepare_imdb.sh": ((*OUTPUT, "--input", "absent"), "absent/train/neg: no folder of reviews there"),
    "prepare_iwslt14_de_en.sh": ((*OUTPUT, "--archive", "absent"), "absent: no such file"),
    "prepare_labelled_audio.sh": ((*OUTPUT, "--input", "absent"), "absent: no such folder"),
    "prepare_labelled_texts.sh": (
        (*OUTPUT, "--train", "absent", "--text", "t", "--label", "l"),
        "absent: no such file",
    ),
    "prepare_narrativeqa.sh": ((*OUTPUT, "--input", "absent"), "absent/documents.csv: no such file"),
    "prepare_nist_zh_en.sh": ((*OUTPUT, "--train", "t", "--nist", "absent"), "absent: no such folder"),
    "prepare_parallel.sh": ((*OUTPUT, *PAIR, "--train", "absent", "--valid", "v"), "absent.de: no such file"),
    "prepare_pixels.sh": ((*OUTPUT, "--input", "absent"), "absent/train-images-idx3-ubyte: no such file"),
    "prepare_ptb.sh": ((*OUTPUT, "--input", "absent"), "absent: there is none of ptb.train.txt"),
    "prepare_questions.sh": ((*OUTPUT, "--train", "absent"), "absent: no such file"),
    "prepare_reviews.sh": ((*OUTPUT, "--input", "absent", "--set", "books"), "absent/books.task.train: no such file"),
    "prepare_spoken_digits.sh": ((*OUTPUT, "--input", "absent"), "absent: no recordings *.wav in it"),
    "prepare_squad.sh": ((*OUTPUT, "--train", "absent", "--test", "absent"), "absent: no such file"),
    "prepare_sst.sh": ((*OUTPUT, "--input", "absent"), "absent/stsa.fine.train: no such file"),
    "prepare_text.sh": ((*OUTPUT, "--train", "absent", "--valid", "v"), "absent: no such file"),
    "prepare_trec.sh": ((*OUTPUT, "--train", "absent", "--test", "absent"), "absent: no such file"),
    "prepare_vctk.sh": ((*OUTPUT, "--input", "absent"), "absent: neither wav48 nor wav48_silence_trimmed is there"),
}


def test_every_script_is_here() -> None:
    assert {path.name for path in (CHECKOUT / "scripts").glob("prepare_*.sh")} == MISSING.keys()


@pytest.mark.parametrize("name", MISSING)
def test_answers_that_need_neither_fairseq_nor_torch(name: str, tmp_path: Path) -> None:
    """They take less than a second for it; how long it would be with them is a matter of the machine."""
    for package in "fairseq", "torch":
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('imported')")

    def answer(*arguments: str, status: int) -> tuple[str, str]:
        command = [CHECKOUT / "scripts" / name, *arguments]
        finished = run_command(command, cwd=tmp_path, status=status, PYTHONPATH=str(tmp_path))
        return finished.stdout, finished.stderr

    command = name.replace("_", " ", 1).removesuffix(".sh")
    assert answer("--help", status=0)[0].startswith(f"usage: fairseq-plugins {command} ")
    assert answer("--version", status=0)[0] == f"fairseq-plugins {VERSION}\n"
    assert "error: unrecognized arguments: --colour" in answer(*MISSING[name][0], "--colour", status=2)[1]
    assert f"error: {MISSING[name][1]}" in answer(*MISSING[name][0], status=1)[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fairseq", "torch"]


def test_prepare_parallel(tmp_path: Path) -> None:
    for seed, (split, size) in enumerate({"train": 120, "valid": 10, "first": 5, "second": 6}.items()):
        write(tmp_path / split, sentences(size, seed))
    options = ["--src-lang", "de", "--tgt-lang", "en", "--train", "train", "--valid", "valid"]
    options += ["--test", "first,second", "--tokenizer", "moses", "--no-escape", "--bpe-size", "120", "--output", "out"]
    finished = run_script("prepare_parallel", *options, cwd=tmp_path)
    assert "train: 120 pairs" in finished.stdout
    assert (tmp_path / "out" / "bin" / "test1.de-en.en.bin").stat().st_size > 0
    assert PairsPreparation.load(tmp_path / "out").detokenize_target("it 's & so .") == "it's & so."
    before = contents(tmp_path)
    failed = run_script("prepare_parallel", *options, "--lowercase", cwd=tmp_path, status=1)
    assert [line for line in failed.stderr.splitlines() if line.startswith("error: ")] == [
        "error: out: already prepared with different options (lowercase): remove it, or name another folder for "
        "--output"
    ]
    assert "Traceback" not in failed.stderr
    assert contents(tmp_path) == before


def test_prepare_iwslt14(tmp_path: Path) -> None:
    pack(tmp_path / "de-en.tgz", official_files())
    options = ["--archive", "de-en.tgz", "--bpe", "subword-nmt", "--bpe-size", "50", "--output", "out"]
    run_script("prepare_iwslt14_de_en", *options, "--allow-partial", cwd=tmp_path)
    assert (tmp_path / "out" / "bin" / "train.de-en.de.bin").stat().st_size > 0
    preparation = PairsPreparation.load(tmp_path / "out")
    assert preparation.bpe == "subword-nmt"
    line = " ".join(random.Random(1).choices(["It's", "R&D,", "word!"], k=20))
    assert preparation.decode_target(preparation.encode_target(line)) == preparation.tokenize_target(line)
