"""Files that are either whole or absent, JSON, locks and checksums. Standard library only."""

from __future__ import annotations

import codecs
import contextlib
import errno
import fcntl
import functools
import gzip
import hashlib
import json
import logging
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from .errors import InputError

logger = logging.getLogger(__name__)

_LONGEST_LINE = 1 << 25
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], mode: str = "w", encoding: str | None = None) -> Iterator[IO[Any]]:
    """Opens a temporary file in the folder of ``path`` and renames it to ``path`` when the block ends without an error.

    Text modes default to UTF-8 with ``\\n`` line ends. After an error nothing is left behind and ``path`` is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    encoding, newline = (None, None) if "b" in mode else (encoding or "utf-8", "\n")
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with open(descriptor, mode, encoding=encoding, newline=newline) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes private files; give the one that stays the permissions of any other new file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename in (None, temporary):
            # Of a full disk Python says no name, and that of the temporary file tells nobody anything.
            error.filename, error.filename2 = str(path), None
        raise


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a new temporary folder beside ``path`` that takes the name ``path`` when the block ends without an error.

    An existing ``path`` is replaced as a whole. After an error nothing is left behind and ``path`` is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _new_directory_beside(path, ".tmp")
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o777 & ~umask)
        if os.path.lexists(path):
            replaced = _new_directory_beside(path, ".old")
            os.replace(path, replaced)
            os.replace(temporary, path)
            shutil.rmtree(replaced)
        else:
            os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _new_directory_beside(path: Path, suffix: str) -> Path:
    # Relative where ``path`` is: Python 3.12 makes mkdtemp's absolute.
    return path.parent / Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=suffix, dir=path.parent)).name


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Writes ``content`` as JSON that people can read, whole or not at all."""
    with atomic_file(path) as stream:
        json.dump(content, stream, ensure_ascii=False, indent=2)
        stream.write("\n")


_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
_OF_THIS_MACHINE = ("/tmp", "/var/tmp", "/dev/shm")
"""Where locks are kept instead of on a file system that has none."""


def take_lock(path: str | os.PathLike[str], wait: bool = False) -> int | None:
    """Takes the lock that the file ``path`` stands for; the file is made where it is not there.

    Where its file system has no locks, processes of this machine alone keep out of each other's way, and a warning says
    so.

    Returns:
        A file descriptor, to be kept open: the lock lasts until this process and every command that inherited it end,
        however that happens (:func:`locked` gives it back before). Forked workers do not inherit it. None where another
        process has the lock and we do not ``wait`` for it.

    Raises:
        OSError: the file cannot be made, or there are locks nowhere; it names the file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _flock(path, wait)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        for folder in _OF_THIS_MACHINE:
            with contextlib.suppress(OSError):
                descriptor = _flock(_substitute(path, folder), wait)
                _warn_of_no_locks(os.path.realpath(path.parent))
                return descriptor
        raise


def _flock(path: Path, wait: bool) -> int | None:
    while True:
        # Writable, as network file systems demand for an exclusive lock.
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it may have removed the file: then a lock on it keeps nobody out.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    _held.add(descriptor)
                    return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError):
                error.filename = str(path)  # flock knows none
            raise
        os.close(descriptor)


def _substitute(path: Path, folder: str) -> Path:
    """The file on this machine that stands for one where there are no locks."""
    kept = Path(folder) / f"fairseq_plugins_locks_{os.getuid()}"
    kept.mkdir(exist_ok=True)
    return kept / hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()


@functools.cache
def _warn_of_no_locks(folder: str) -> None:
    logger.warning(
        f"{folder}: this file system has no locks, so that processes of this machine alone keep out of each other's "
        f"way; start nothing in this folder on another machine meanwhile"
    )


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], refusal: str | None = None, keep: bool = True) -> Iterator[int]:
    """Has the lock that the file ``path`` stands for while the block runs; yields what :func:`take_lock` returns.

    Args:
        refusal: what to say where another process has it; None to wait instead.
        keep: whether the file stays; without it no other process may inherit the lock.

    Raises:
        InputError: ``refusal``, where another process has it.
    """
    descriptor = take_lock(path, wait=refusal is None)
    if descriptor is None:
        raise InputError(refusal)
    try:
        yield descriptor
    finally:
        if not keep:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        _held.discard(descriptor)
        os.close(descriptor)


_held: set[int] = set()


def _leave_locks_to_the_parent() -> None:
    while _held:
        os.close(_held.pop())


# A worker may outlive a parent that is killed: it would keep everybody out.
os.register_at_fork(after_in_child=_leave_locks_to_the_parent)


def refuse_colon(path: str | os.PathLike[str], option: str) -> None:
    """Refuses a folder that fairseq would take for several: it splits lists of paths at colons.

    Args:
        path: of the folder; relative to the working directory, which counts too
        option: what names the folder, in the error

    Raises:
        InputError: there is a colon in the absolute path.
    """
    if ":" in os.path.abspath(path):
        raise InputError(
            f"{os.path.abspath(path)}: fairseq takes a path with ':' for several; name another folder for {option}"
        )


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 checksum of a file, in hexadecimal."""
    with open(path, "rb") as stream:
        digest = hashlib.sha256()
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def checksum_of_lines(lines: Iterable[str]) -> str:
    """The SHA-256 checksum of lines of text as they would be in a file, in hexadecimal."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def read_lines(path: str | os.PathLike[str], errors: str = "strict") -> Iterator[str]:
    """The lines of a UTF-8 file without their line ends (``\\n``; a ``\\r`` before it goes too), one at a time.

    A byte order mark at the head of the file is no part of the first line.

    Only ``\\n`` ends a line, so that both sides of a parallel text split alike whatever characters they hold. A file
    whose name ends in ``.gz`` is unpacked on the way. ``errors`` is what is done with bytes that are not UTF-8, as
    :meth:`bytes.decode` has it.

    Raises:
        InputError: the file is missing or damaged, or a line is not UTF-8, has NUL bytes or is longer than any
            sentence; the message names file and line.
    """
    path = Path(path)
    try:
        stream = gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, a text file was expected") from None
    is_empty = True
    with stream:
        for line in lines_of(stream, path, errors):
            is_empty = False
            yield line
    if is_empty and path.suffix == ".gz" and path.stat().st_size == 0:
        raise InputError(f"{path}: not a whole gzip file (it is empty); fetch it again")


def lines_of(stream: IO[bytes] | gzip.GzipFile, name: str | os.PathLike[str], errors: str = "strict") -> Iterator[str]:
    """As :func:`read_lines`, of a stream that is open; ``name`` is what errors call it."""
    number = 0
    try:
        while line := stream.readline(_LONGEST_LINE + 1):
            number += 1
            if number == 1 and line.startswith(_WIDE_MARKS):
                raise InputError(f"{name}: UTF-16 text; convert it to UTF-8 with iconv -f UTF-16 -t UTF-8")
            if b"\0" in line:
                raise InputError(
                    f"{name}, line {number}: a NUL byte, which no text has; if it is UTF-16, convert it with "
                    f"iconv -f UTF-16 -t UTF-8, else fetch it again"
                )
            if len(line) > _LONGEST_LINE:
                raise InputError(
                    f"{name}, line {number}: more than {_LONGEST_LINE:,} bytes; one sentence a line was expected"
                )
            text = line.decode("utf-8", errors).removesuffix("\n").removesuffix("\r")
            yield text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}, line {number}: not UTF-8 (byte {error.start + 1} is 0x{line[error.start]:02x}); "
            f"convert it, for example with iconv -f ISO-8859-1 -t UTF-8"
        ) from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{name}: not a whole gzip file ({error}); fetch it again") from None
