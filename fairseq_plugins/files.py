"""Files that are either whole or absent, JSON, locks and checksums."""

from __future__ import annotations

import codecs
import contextlib
import errno
import fcntl
import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from .errors import InputError

LONGEST_LINE = 1 << 25
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
# How packed content begins, which no text does: what it is, and what unpacks it.
_PACKINGS = {
    rb"\x1f\x8b": ("gzip", "gunzip, or give it a name that ends in .gz"),
    rb"PK\x03\x04": ("zip", "unzip"),
    rb"BZh\d1AY&SY": ("bzip2", "bunzip2"),
    rb"\xfd7zXZ\x00": ("xz", "unxz"),
    rb"\x28\xb5\x2f\xfd": ("zstandard", "unzstd"),
}
BYTE_ORDER_MARK = "\ufeff"


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
            try:
                os.replace(path, replaced)
                os.replace(temporary, path)
            except BaseException:
                if os.path.lexists(path):
                    with contextlib.suppress(OSError):
                        os.rmdir(replaced)
                else:
                    os.replace(replaced, path)
                raise
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


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], refusal: str | None = None, keep: bool = True) -> Iterator[None]:
    """Has the lock that the file ``path`` stands for while the block runs; the file is made where it is not there.

    Where its file system has no locks, a file beside it says who has the lock.

    Args:
        refusal: what to say where another process has it; None to wait instead.
        keep: whether the file stays.

    Raises:
        InputError: ``refusal``, where another process has it.
    """
    # Not at the head of the file: what locks nothing does without the package.
    from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    timeout = -1 if refusal is None else 0
    lock: BaseFileLock = FileLock(path, timeout)
    try:
        try:
            lock.acquire()
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            lock = SoftFileLock(_beside(path), timeout)
            lock.acquire()
    except Timeout:
        raise InputError(refusal) from None
    try:
        yield
    finally:
        if not keep:
            path.unlink(missing_ok=True)
        lock.release()


@contextlib.contextmanager
def inheritable_lock(path: str | os.PathLike[str], refusal: str) -> Iterator[list[int]]:
    """As :func:`locked`, for a command that is to keep the lock when this process alone is killed.

    Yields:
        File descriptors for the command to inherit; none where the file system has no locks.

    Raises:
        InputError: ``refusal``, where another process has it.
    """
    path = Path(path)
    try:
        descriptor = take_lock(path)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        with locked(_beside(path), refusal):
            yield []
        return
    if descriptor is None:
        raise InputError(refusal)
    try:
        yield [descriptor]
    finally:
        os.close(descriptor)


def take_lock(path: str | os.PathLike[str]) -> int | None:
    """Takes a lock that lasts until this process and every command that inherited it end, however that happens.

    filelock has none: it unlocks a file where it releases it, and so takes the lock from a command that inherited it;
    we only close our descriptor.

    Returns:
        A file descriptor, to be kept open; None where another process has the lock.

    Raises:
        OSError: the file cannot be made, or its file system has no locks.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Writable, as network file systems demand for an exclusive lock.
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.holder")


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


def refuse_pipe(path: Path) -> None:
    """Raises InputError where a file that is read several times can be read only once."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            f"{path}: a pipe, which is empty after it has been read once, and text is read several times; write it "
            f"into a file"
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

    Byte order marks at the head of a line are no part of it: files that begin with one may have been joined.

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
        while line := stream.readline(LONGEST_LINE + 1):
            number += 1
            if number == 1 and line.startswith(_WIDE_MARKS):
                raise InputError(f"{name}: UTF-16 text; convert it to UTF-8 with iconv -f UTF-16 -t UTF-8")
            if number == 1:
                _refuse_packed(line, name)
            if b"\0" in line:
                raise InputError(
                    f"{name}, line {number}: a NUL byte, which no text has; if it is UTF-16, convert it with "
                    f"iconv -f UTF-16 -t UTF-8, else fetch it again"
                )
            if len(line) > LONGEST_LINE:
                raise InputError(
                    f"{name}, line {number}: more than {LONGEST_LINE:,} bytes; one sentence a line was expected"
                )
            yield line.decode("utf-8", errors).removesuffix("\n").removesuffix("\r").lstrip(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}, line {number}: not UTF-8 (byte {error.start + 1} is 0x{line[error.start]:02x}); "
            f"convert it, for example with iconv -f ISO-8859-1 -t UTF-8"
        ) from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{name}: not a whole gzip file ({error}); fetch it again") from None


def _refuse_packed(start: bytes, name: str | os.PathLike[str]) -> None:
    """Raises InputError where what was given as text begins as packed content does."""
    for magic, (packing, remedy) in _PACKINGS.items():
        if re.match(magic, start):
            raise InputError(f"{name}: packed by {packing}, though its name does not say so; unpack it: {remedy}")
