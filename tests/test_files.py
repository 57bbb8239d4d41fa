"""Files that are whole or absent."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.files import atomic_directory, atomic_file, read_lines, sha256


@pytest.fixture
def umask() -> Iterator[int]:
    old = os.umask(0o027)
    yield 0o027
    os.umask(old)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_atomic_file_is_absent_until_it_is_whole(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "new" / "text") as stream:
        stream.write("ä\r\n")
        assert not (tmp_path / "new" / "text").exists()
    assert (tmp_path / "new" / "text").read_bytes() == "ä\r\n".encode()
    assert names(tmp_path / "new") == ["text"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_atomic_file_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "text").write_text("old")
    with pytest.raises(error), atomic_file(tmp_path / "text") as stream:
        stream.write("new")
        raise error
    assert (tmp_path / "text").read_text() == "old"
    assert names(tmp_path) == ["text"]


def test_atomic_file_binary(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "bytes", "wb") as stream:
        stream.write(b"\xff\n")
    assert (tmp_path / "bytes").read_bytes() == b"\xff\n"


def test_permissions_are_those_of_any_other_new_file(tmp_path: Path, umask: int) -> None:
    with atomic_file(tmp_path / "text"):
        pass
    with atomic_directory(tmp_path / "folder"):
        pass
    assert stat.S_IMODE((tmp_path / "text").stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o777 & ~umask


def test_atomic_directory_replaces_the_whole_folder(tmp_path: Path) -> None:
    for content in ("old", "new"):
        with atomic_directory(tmp_path / "folder") as folder:
            (folder / content).write_text(content)
            assert names(tmp_path / "folder") == ["old"] if content == "new" else not (tmp_path / "folder").exists()
    assert names(tmp_path / "folder") == ["new"]
    assert names(tmp_path) == ["folder"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_atomic_directory_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("old")
    with pytest.raises(error), atomic_directory(tmp_path / "folder") as folder:
        (folder / "new").write_text("new")
        raise error
    assert names(tmp_path) == ["folder"]
    assert names(tmp_path / "folder") == ["old"]


def test_sha256(tmp_path: Path) -> None:
    content = os.urandom(3 << 20)
    (tmp_path / "bytes").write_bytes(content)
    assert sha256(tmp_path / "bytes") == hashlib.sha256(content).hexdigest()


def test_read_lines_splits_at_line_feeds_only(tmp_path: Path) -> None:
    text = "one\r\ntwo \u2028 still two \x0b\x85\r two\n\nlast"
    (tmp_path / "text").write_bytes(text.encode())
    (tmp_path / "text.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("text", "text.gz"):
        assert list(read_lines(tmp_path / name)) == ["one", "two \u2028 still two \x0b\x85\r two", "", "last"]


def test_read_lines_names_the_line_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"good\ngr\xfcn\n")
    lines = read_lines(tmp_path / "text")
    assert next(lines) == "good"
    with pytest.raises(InputError, match=r"text, line 2: not UTF-8 \(byte 3 is 0xfc\)"):
        next(lines)


def test_read_lines_of_what_is_no_text_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent: no such file"):
        list(read_lines(tmp_path / "absent"))
    with pytest.raises(InputError, match="is a folder"):
        list(read_lines(tmp_path))


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: b"no gzip", lambda packed: b""])
def test_read_lines_of_a_damaged_gzip_file(tmp_path: Path, damage) -> None:
    packed = damage(gzip.compress(os.urandom(5000)))
    (tmp_path / "text.gz").write_bytes(packed)
    if packed:
        with pytest.raises(InputError, match=r"text\.gz"):
            list(read_lines(tmp_path / "text.gz"))
    else:
        assert list(read_lines(tmp_path / "text.gz")) == []
