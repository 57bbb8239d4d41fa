"""A disk that is full at every moment at which it can be: one sentence, and the next run ends with the same bytes."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairseq_plugins.corpora.pairs import PairsPreparation, PairsRun
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments.run import Run
from fairseq_plugins.files import atomic_directory, atomic_file, write_json
from tests.corpora.conftest import no_binarising as no_binarising  # noqa: PLC0414 - a fixture
from tests.corpora.parallel_text import contents, sentences, write

# What creates, fills and renames files.
CALLS = ("fsync", "replace", "open")


class FullDisk:
    """Has the n-th of the calls by which files are made fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails_at, self.calls = 0, 0
        for name in CALLS:
            monkeypatch.setattr(os, name, self._failing(getattr(os, name)))
        monkeypatch.setattr(Path, "mkdir", self._failing(Path.mkdir))

    def _failing(self, real: Callable) -> Callable:
        def call(*arguments: object, **options: object) -> object:
            self.calls += 1
            if self.calls == self.fails_at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments, **options)

        return call

    @contextlib.contextmanager
    def at(self, number: int) -> Iterator[None]:
        """The block, with the ``number``-th call in it failing."""
        self.fails_at, self.calls = number, 0
        try:
            yield
        finally:
            self.fails_at = 0


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    return FullDisk(monkeypatch)


def every_moment(disk: FullDisk, act: Callable[[], object], look: Callable[[], None]) -> int:
    """Does something with the disk full at its first, second … call, until it does not fail; returns how often it did.

    Args:
        look: what is looked at after each failure
    """
    for number in itertools.count(1):
        try:
            with disk.at(number):
                act()
        except (OSError, InputError) as error:
            assert "No space left" in str(error)
            look()
        else:
            if disk.calls < number:
                return number - 1


def test_a_preparation(tmp_path: Path, no_binarising: None, disk: FullDisk) -> None:
    inputs = {
        split: write(tmp_path / "text" / split, sentences(12, seed)) for seed, split in enumerate(("train", "valid"))
    }
    steps = PairsPreparation("de", "en", bpe="subword-nmt", bpe_size=20)

    def prepare(name: str) -> None:
        PairsRun(steps, inputs, tmp_path / name).prepare()

    prepare("uninterrupted")
    expected = contents(tmp_path / "uninterrupted")
    output = tmp_path / "out"

    def look() -> None:
        # It is there to the last byte, or not at all; and the next one begins anew.
        if output.exists():
            assert contents(output) == expected
        prepare("out")
        assert contents(output) == expected
        shutil.rmtree(output)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["text", "uninterrupted"]

    failures = every_moment(disk, lambda: prepare("out"), look)
    assert failures > 3
    assert contents(output) == expected


@pytest.mark.parametrize("before", [None, "old"])
def test_files_are_whole_or_as_they_were(tmp_path: Path, disk: FullDisk, before: str | None) -> None:
    path, folder = tmp_path / "file", tmp_path / "folder"

    def reset() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_text(before)
            folder.mkdir()
            (folder / "part").write_text(before)

    def act() -> None:
        with atomic_file(path) as stream:
            stream.write("new")
        with atomic_directory(folder) as temporary:
            (temporary / "part").write_text("new")

    def look() -> None:
        assert (path.read_text() if path.exists() else None) in (before, "new")
        part = folder / "part"
        left = {file.name for file in tmp_path.iterdir()} - {"file", "folder"}
        # Between two renames the old folder has another name; nothing of it is lost.
        assert part.exists() or before is None or any(name.startswith(".folder.") for name in left)
        for name in left:
            shutil.rmtree(tmp_path / name)
        reset()

    reset()
    assert every_moment(disk, act, look) >= 3


def test_results_keep_what_they_had(tmp_path: Path, disk: FullDisk) -> None:
    Run(tmp_path).write({"updates": 5})

    def look() -> None:
        assert Run(tmp_path).results == {"updates": 5}
        assert not list(tmp_path.glob("*.tmp"))

    def update() -> None:
        # A lock that cannot be made is tried once more, so that a moment may pass unnoticed.
        (tmp_path / "results.json").write_text('{"updates": 5}', encoding="utf-8")
        Run(tmp_path).update(bleu=30.0)

    assert every_moment(disk, update, look) >= 2
    assert Run(tmp_path).results == {"updates": 5, "bleu": 30.0}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, where mounting is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here ({error})")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_real_full_disk(small_disk: Path, tmp_path: Path, no_binarising: None) -> None:
    inputs = {split: write(tmp_path / split, sentences(400, seed)) for seed, split in enumerate(("train", "valid"))}
    steps = PairsPreparation("de", "en", bpe="none")
    with pytest.raises(OSError, match="No space left") as raised:
        PairsRun(steps, inputs, small_disk / "out").prepare()
    assert raised.value.errno == errno.ENOSPC
    assert not list(small_disk.iterdir())
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    for output in small_disk / "out", tmp_path / "uninterrupted":
        PairsRun(steps, inputs, output).prepare()
    assert contents(small_disk / "out") == contents(tmp_path / "uninterrupted")


def test_json_on_a_real_full_disk(small_disk: Path) -> None:
    write_json(small_disk / "results.json", {"updates": 5})
    with pytest.raises(OSError, match="No space left") as raised:
        write_json(small_disk / "results.json", {"updates": "6" * 100_000})
    assert raised.value.filename == str(small_disk / "results.json")
    assert [path.name for path in small_disk.iterdir()] == ["results.json"]
    assert Run(small_disk).results == {"updates": 5}
