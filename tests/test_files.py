"""Files that are whole or absent, locks, and reading lines."""

from __future__ import annotations

import bz2
import errno
import fcntl
import gzip
import hashlib
import lzma
import multiprocessing
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairseq_plugins.errors import InputError
from fairseq_plugins.files import (
    atomic_directory,
    atomic_file,
    inheritable_lock,
    locked,
    read_lines,
    sha256,
    take_lock,
    write_json,
)
from tests.commands import CHECKOUT


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


def test_atomic_directory_that_cannot_take_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the new folder nor the old one stays under another name."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("old")
    (tmp_path / "link").symlink_to("folder")
    with pytest.raises(OSError), atomic_directory(tmp_path / "link"):
        pass
    assert names(tmp_path) == ["folder", "link"]
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        if str(source).endswith(".tmp"):
            raise OSError("no more")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="no more"), atomic_directory(tmp_path / "folder"):
        pass
    assert names(tmp_path) == ["folder", "link"]
    assert names(tmp_path / "folder") == ["old"]


@pytest.mark.parametrize("is_absolute", [False, True])
def test_atomic_directory_of_a_relative_path_is_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_absolute: bool
) -> None:
    """Whatever mkdtemp makes of it: until Python 3.11 a relative path, from 3.12 on an absolute one."""
    monkeypatch.chdir(tmp_path)
    mkdtemp = tempfile.mkdtemp
    change = os.path.abspath if is_absolute else os.path.relpath
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *args, **options: change(mkdtemp(*args, **options)))
    for content in "first", "second":
        with atomic_directory("out/bin") as folder:
            assert folder.parent == Path("out")
            (folder / "file").write_text(content)
        assert (tmp_path / "out" / "bin" / "file").read_text() == content
    assert os.listdir("out") == ["bin"]


def test_write_json(tmp_path: Path) -> None:
    write_json(tmp_path / "new" / "content.json", {"ä": [1, None, "\u2028"], "b": {}})
    assert (tmp_path / "new" / "content.json").read_text(encoding="utf-8") == (
        '{\n  "ä": [\n    1,\n    null,\n    "\u2028"\n  ],\n  "b": {}\n}\n'
    )
    with pytest.raises(TypeError):
        write_json(tmp_path / "new" / "content.json", {"path": tmp_path})
    assert names(tmp_path / "new") == ["content.json"]
    assert '"ä"' in (tmp_path / "new" / "content.json").read_text(encoding="utf-8")


# Takes the lock named by its first argument, says so, and keeps it until its standard input ends.
HOLDER = """
import sys
from fairseq_plugins.files import locked
with locked(sys.argv[1], keep=sys.argv[2] == "keep"):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process that has the lock ``tmp_path/lock``."""
    arguments = [sys.executable, "-c", HOLDER, str(tmp_path / "lock"), getattr(request, "param", "keep")]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    process = subprocess.Popen(arguments, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "locked\n"
    with process:
        yield process
        process.kill()


def test_one_process_at_a_time_has_a_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert take_lock(tmp_path / "lock") is None
    with pytest.raises(InputError, match="^somebody is at work$"), locked(tmp_path / "lock", "somebody is at work"):
        pass
    with locked(tmp_path / "folder" / "another", "somebody is at work"):
        assert take_lock(tmp_path / "folder" / "another") is None
    holder.kill()
    holder.wait()
    # However a process ends, its lock is free; and so is ours after the block.
    for _ in range(2):
        with locked(tmp_path / "lock", "somebody is at work"):
            pass
    assert names(tmp_path) == ["folder", "lock"]


@pytest.mark.parametrize("holder", ["keep", "remove"], indirect=True)
def test_waiting_for_a_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    threading.Timer(0.3, holder.stdin.close).start()
    with locked(tmp_path / "lock"):
        # Its end is what we have waited for; and we did not get the lock of a file that is not there any more.
        assert holder.stdin.closed
        assert take_lock(tmp_path / "lock") is None
    assert names(tmp_path) == ["lock"]


def test_a_lock_can_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock", "somebody is at work", keep=False):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_a_process_that_inherited_a_lock_keeps_it(tmp_path: Path) -> None:
    with inheritable_lock(tmp_path / "lock", "somebody is at work") as descriptors:
        child = subprocess.Popen(["sleep", "60"], pass_fds=descriptors)
    with (
        pytest.raises(InputError, match="^somebody is at work$"),
        inheritable_lock(tmp_path / "lock", "somebody is at work"),
    ):
        pass
    child.kill()
    child.wait()
    with inheritable_lock(tmp_path / "lock", "somebody is at work"):
        assert take_lock(tmp_path / "lock") is None


@pytest.fixture(params=[errno.ENOSYS, errno.ENOLCK], ids=["lustre", "nfs"])
def unlockable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A folder of a file system that has no locks: Lustre without ``-o flock``, NFS without its daemon."""

    def fail(descriptor: int, operation: int) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", fail)
    return tmp_path


@pytest.mark.parametrize("lock", [locked, inheritable_lock])
def test_where_a_file_system_has_no_locks_a_file_says_who_is_at_work(unlockable: Path, lock: Callable) -> None:
    path = unlockable / "work" / ".lock"
    with lock(path, "somebody is at work") as descriptors:
        assert not descriptors
        with pytest.raises(InputError, match="^somebody is at work$"), lock(path, "somebody is at work"):
            pass
        with lock(unlockable / ".lock", "somebody is at work"):
            pass
    with lock(path, "somebody is at work"):
        pass


@pytest.mark.parametrize("lock", [locked, inheritable_lock])
def test_a_killed_process_keeps_nobody_out_where_there_are_no_locks(unlockable: Path, lock: Callable) -> None:
    path, reached = unlockable / ".lock", unlockable / "reached"

    def hold() -> None:
        with lock(path, "somebody is at work"):
            reached.touch()
            time.sleep(60)

    process = multiprocessing.get_context("fork").Process(target=hold)
    process.start()
    while not reached.exists():
        time.sleep(0.01)
    with pytest.raises(InputError, match="^somebody is at work$"), lock(path, "somebody is at work"):
        pass
    process.kill()
    process.join()
    with lock(path, "somebody is at work"):
        pass


def test_a_lock_without_locks_can_leave_nothing_behind(unlockable: Path) -> None:
    with locked(unlockable / "work" / ".lock", keep=False):
        pass
    assert names(unlockable / "work") == []


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
    with pytest.raises(InputError, match=r"text\.gz"):
        list(read_lines(tmp_path / "text.gz"))


def test_byte_order_marks_at_the_head_of_lines_are_no_part_of_them(tmp_path: Path) -> None:
    """Each of two files began with one before ``cat`` joined them."""
    path = tmp_path / "joined"
    path.write_text("\ufeffgood\tA film.\nbad\tA bore.\n\ufeffgood\tA \ufeff joy.\n\ufeff\n", encoding="utf-8")
    assert list(read_lines(path)) == ["good\tA film.", "bad\tA bore.", "good\tA \ufeff joy.", ""]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (gzip.compress(b"A line.\n"), "packed by gzip, though .* give it a name that ends in .gz"),
        (bz2.compress(b"A line.\n"), "packed by bzip2, though .*: bunzip2"),
        (lzma.compress(b"A line.\n"), "packed by xz, though .*: unxz"),
        (b"PK\3\4\x14\0\0\0", "packed by zip, though .*: unzip"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "packed by zstandard, though .*: unzstd"),
    ],
    ids=["gzip", "bzip2", "xz", "zip", "zstandard"],
)
def test_packed_content_under_a_plain_name(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "train.de").write_bytes(content)
    with pytest.raises(InputError, match=f"train.de: {sentence}"):
        list(read_lines(tmp_path / "train.de"))
