"""Prepared data, as commands are given it."""

from __future__ import annotations

import argparse
import dataclasses
import shutil
from pathlib import Path

import pytest

from fairseq_plugins.corpora.generated_sequences import GeneratedSequencesPreparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import configuration
from fairseq_plugins.files import sha256
from tests.experiments.conftest import recorded


def test_prepared_data_lacks_a_dictionary(data: PreparedData) -> None:
    (data.folder / "bin" / "dict.en.txt").unlink()
    with pytest.raises(InputError, match="dict.en.txt: the dictionary is missing"):
        PreparedData.load(data.folder)


def test_the_data_of_a_configuration_is_not_prepared(tmp_path: Path) -> None:
    content = "data: {folder: " + str(tmp_path / "data") + "}\ntrain: {arch: lstm}\n"
    for name in ("_base.yaml", "small.yaml"):
        (tmp_path / name).write_text(content)
    small = configuration.load(tmp_path / "small.yaml")
    with pytest.raises(InputError, match=r"data: no such folder; prepare the data by 'fairseq-plugins prepare'"):
        small.prepared_data()
    for name in ("small.yaml", "_base.yaml"):
        (tmp_path / name).write_text("# Data: fairseq-plugins prepare parallel\n" + content)
        with pytest.raises(InputError, match=rf"prepare the data as the head of .*{name} says"):
            small.prepared_data()


def test_sequences_of_another_problem(tmp_path: Path) -> None:
    GeneratedSequencesPreparation(problem="pixels", length=784, is_permuted=True).save(tmp_path)
    data, task = PreparedData.load(tmp_path), {"problem": "pixels", "sequence_length": 784, "permute": True}
    data.check_trained_on({"cfg": {"task": task}}, "a.pt")
    for name, value in ("permute", False), ("sequence_length", 1000), ("problem", "copy_memory"):
        with pytest.raises(
            InputError, match=f"of {name} .*, but a.pt was trained with {name} {value}; give the prepared"
        ):
            data.check_trained_on({"cfg": {"task": {**task, name: value}}}, "a.pt")
    with pytest.raises(InputError, match="a.pt was trained with problem None"):
        data.check_trained_on({"cfg": {"task": argparse.Namespace(data="x")}}, "a.pt")


FILES = (
    "bin/dict.de.txt",
    "bin/train.de-en.de.bin",
    "bin/test.de-en.de.bin",
    "bpe/model",
    "tokens/test.en",
    "raw/test.en",
)


@pytest.fixture
def with_checksums(data: PreparedData) -> PreparedData:
    """Data with the checksums of its files."""
    for name in FILES:
        path = data.folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(f"{name} 1\n", encoding="utf-8")
    splits = {"train": {}, "valid": {}, "test": {}}
    return recorded(dataclasses.replace(data, preparation=dataclasses.replace(data.preparation, splits=splits)))


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_noticed_by_who_reads_them(with_checksums: PreparedData, name: str) -> None:
    path = with_checksums.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    checks = {
        "train": with_checksums.verify_training,
        "test": lambda: with_checksums.verify("test"),
        "translate": lambda: with_checksums.verify(""),
    }
    readers = {"dict": ("train", "test", "translate"), "model": ("test", "translate"), "train": ("train",)}
    readers["test"] = ("test",)
    for reader, check in checks.items():
        if reader in readers[Path(name).name.split(".")[0]]:
            with pytest.raises(InputError, match=f"{name}: missing, or not what was prepared; delete .*prepared data"):
                check()
        else:
            check()


def test_raw_text_may_be_deleted(with_checksums: PreparedData) -> None:
    shutil.rmtree(with_checksums.folder / "raw")
    with_checksums.verify("test")
    shutil.rmtree(with_checksums.folder / "tokens")
    with pytest.raises(InputError, match="tokens/test.en: missing"):
        with_checksums.verify("test")


def test_checksums_of_what_a_training_reads(with_checksums: PreparedData) -> None:
    names = "bin/dict.de.txt", "bin/dict.en.txt", "bin/train.de-en.de.bin"
    assert with_checksums.training_checksums() == {name: sha256(with_checksums.folder / name) for name in names}
