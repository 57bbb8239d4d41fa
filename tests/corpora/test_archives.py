"""How large an archive becomes is looked at before anything of it is unpacked."""

from __future__ import annotations

import errno
import io
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_plugins.corpora import gigaword, iwslt14
from fairseq_plugins.corpora.archives import unpack
from fairseq_plugins.errors import InputError


class Zeros(io.RawIOBase):
    """So many zero bytes."""

    def __init__(self, count: int) -> None:
        self.left = count

    def read(self, size: int = -1) -> bytes:
        size = min(self.left, size if size >= 0 else self.left)
        self.left -= size
        return bytes(size)


@pytest.fixture
def bomb(tmp_path: Path) -> Path:
    """A small archive of files of 30 MB."""
    path = tmp_path / "bomb.tgz"
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name in "train.article.txt", "train.title.txt":
            member = tarfile.TarInfo(name)
            member.size = 30_000_000
            tar.addfile(member, Zeros(member.size))
    assert path.stat().st_size < 1_000_000
    return path


@pytest.mark.parametrize("extract", [gigaword.extract, iwslt14.extract])
def test_an_archive_that_is_too_large_is_not_unpacked(bomb: Path, tmp_path: Path, extract: Callable) -> None:
    folder = tmp_path / "folder"
    expected = r"unpacked it is more than 0.04 GB \(0.1 GB with train.title.txt\): .* raise --max-unpacked"
    with pytest.raises(InputError, match=expected):
        extract(bomb, folder, 0.04)
    assert not folder.exists()


def test_the_size_is_said_first(bomb: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unpack(bomb, tmp_path / "folder", 1, lambda member: "title" in member.name)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["train.title.txt"]
    assert capsys.readouterr().out == f"{bomb}: unpacking 1 files, 30.0 MB\n"


def test_what_says_to_be_huge_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "huge.tar"
    member = tarfile.TarInfo("train.article.txt")
    member.size = 10**13
    path.write_bytes(member.tobuf() + bytes(10_000))
    before = time.monotonic()
    with pytest.raises(InputError, match="10,000.0 GB with train.article.txt"):
        gigaword.extract(path, tmp_path / "folder")
    assert time.monotonic() - before < 30


def test_what_is_no_archive_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive", encoding="utf-8")
    with pytest.raises(InputError, match="text: not a whole archive .*; fetch it again") as raised:
        gigaword.extract(tmp_path / "text", tmp_path / "folder")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("damage", [bytes(20), b""])
def test_a_damaged_archive(bomb: Path, tmp_path: Path, damage: bytes) -> None:
    content = bomb.read_bytes()
    bomb.write_bytes(content[: len(content) // 2] + damage)
    with pytest.raises(InputError, match="bomb.tgz: not a whole archive .*; fetch it again"):
        unpack(bomb, tmp_path / "folder", 1)


def test_a_full_disk_is_no_fault_of_the_archive(bomb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "extractall", full)
    with pytest.raises(OSError, match="No space left on device"):
        unpack(bomb, tmp_path / "folder", 1)
