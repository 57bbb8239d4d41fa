"""Copy memory and pixels, prepared: what is written, and files that cannot be used."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from fairseq_plugins.corpora import generated_sequences
from fairseq_plugins.corpora.generated_sequences import GeneratedSequencesPreparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> GeneratedSequencesPreparation:
    given = [str(argument) for argument in arguments]
    generated_sequences.main([*given, "--workers", "1"])
    return GeneratedSequencesPreparation.load(given[given.index("--output") + 1])


def idx(path: Path, array: np.ndarray) -> None:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    path.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))


def write_mnist(folder: Path, train: int = 5003, test: int = 4) -> Path:
    folder.mkdir()
    for name, count in ("train", train), ("t10k", test):
        pixels = np.arange(count)[:, None, None] % 7 + np.zeros((1, 28, 28))
        idx(folder / f"{name}-images-idx3-ubyte.gz", pixels)
        idx(folder / f"{name}-labels-idx1-ubyte.gz", np.arange(count) % 10)
    return folder


def test_copy_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    prepared = run(monkeypatch, "copy_memory", "--length", 20, "--sequences", 3, "--output", tmp_path / "out")
    assert capsys.readouterr().out.startswith("preparing the splits in ")
    assert prepared.metric == "copy_memory"
    assert prepared.fairseq_arguments("DATA")[1:] == [
        *("--task", "long_memory", "--problem", "copy_memory", "--sequence-length", "20")
    ]
    lines = list(read_lines(tmp_path / "out/raw/test.label"))
    assert len(lines) == 3 and all(len(line.split()) == 10 for line in lines)
    with np.load(tmp_path / "out/bin/test.npz") as arrays:
        assert [" ".join(map(str, row)) for row in arrays["symbols"]] == lines
    run(monkeypatch, "copy_memory", "--length", 20, "--sequences", 3, "--output", tmp_path / "again")
    assert list(read_lines(tmp_path / "again/raw/test.label")) == lines, "the same command gives the same set"
    assert list(read_lines(tmp_path / "out/raw/valid.label")) != lines


def test_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_mnist(tmp_path / "mnist")
    prepared = run(
        monkeypatch, "pixels", "--input", folder, "--permute", "--length", 1000, "--output", tmp_path / "out"
    )
    assert {name: facts["kept"] for name, facts in prepared.splits.items()} == {"train": 3, "valid": 5000, "test": 4}
    assert "--permute" in prepared.fairseq_arguments("DATA") and prepared.labels == list("0123456789")
    assert list(read_lines(tmp_path / "out/raw/test.label")) == ["0", "1", "2", "3"]
    with np.load(tmp_path / "out/bin/train.npz") as arrays:
        assert arrays["labels"].tolist() == [0, 1, 2] and arrays["pixels"][0, 0] == 5000 % 7


def test_what_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_mnist(tmp_path / "mnist", train=10)

    def error_of(*options: object) -> str:
        with pytest.raises(InputError) as raised:
            run(monkeypatch, *options, "--output", tmp_path / "out")
        return str(raised.value)

    assert "10 digits; 5,000 validate" in error_of("pixels", "--input", folder)
    assert "length is 700: it must be at least 784" in error_of("pixels", "--input", folder, "--length", 700)
    assert "length is 0: it must be at least 784" in error_of("pixels", "--input", folder, "--length", 0)
    assert "length is 0: it must be at least 1" in error_of("copy_memory", "--length", 0)
    assert "seed is -1: it must be at least 0" in error_of("copy_memory", "--seed", -1)
    labels = gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes())
    for damaged in labels[:6], labels[:-1], labels + b"1":
        (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(damaged))
        assert "t10k-labels-idx1-ubyte.gz: the file is not whole" in error_of("pixels", "--input", folder)
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    assert "t10k-labels-idx1-ubyte: no such file, nor t10k-labels-idx1" in error_of("pixels", "--input", folder)
    (folder / "t10k-labels-idx1-ubyte").write_bytes(b"no idx file")
    assert "t10k-labels-idx1-ubyte: not an idx file of bytes in 1 dimensions" in error_of("pixels", "--input", folder)
