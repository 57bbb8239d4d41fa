"""Files that are either whole or absent, JSON, locks and checksums. Standard library only."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from .errors import InputError


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], mode: str = "w", encoding: str | None = None) -> Iterator[IO]:
    """Opens a temporary file in the folder of ``path`` and renames it to ``path`` when the block ends without an error.

    Text modes default to UTF-8 with ``\\n`` line ends. After an error nothing is left behind and ``path`` is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = {} if "b" in mode else {"encoding": encoding or "utf-8", "newline": "\n"}
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with open(descriptor, mode, **text) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes private files; give the one that stays the permissions of any other new file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a new temporary folder beside ``path`` that takes the name ``path`` when the block ends without an error.

    An existing ``path`` is replaced as a whole. After an error nothing is left behind and ``path`` is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o777 & ~umask)
        if path.exists():
            replaced = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
            os.replace(path, replaced)
            os.replace(temporary, path)
            shutil.rmtree(replaced)
        else:
            os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Writes ``content`` as JSON that people can read, whole or not at all."""
    with atomic_file(path) as stream:
        json.dump(content, stream, ensure_ascii=False, indent=2)
        stream.write("\n")


def take_lock(path: str | os.PathLike[str], wait: bool = False) -> int | None:
    """Takes the lock that the file ``path`` stands for; the file is made where it is not there.

    Returns:
        A file descriptor. The lock lasts until it is closed, here and in every process that inherited it: at the latest
        until they end, however that happens. None where another process has the lock and we do not ``wait`` for it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        # Writable, as network file systems demand for an exclusive lock.
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it may have removed the file: then a lock on it keeps nobody out.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


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
        os.close(descriptor)


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 checksum of a file, in hexadecimal."""
    with open(path, "rb") as stream:
        digest = hashlib.sha256()
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a UTF-8 file without their line ends (``\\n``; a ``\\r`` before it goes too), one at a time.

    A byte order mark at the head of the file is no part of the first line.

    Only ``\\n`` ends a line, so that both sides of a parallel text split alike whatever characters they hold. A file
    whose name ends in ``.gz`` is unpacked on the way.

    Raises:
        InputError: the file is missing or damaged, or a line is not UTF-8; the message names file and line.
    """
    path = Path(path)
    try:
        stream = gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, a text file was expected") from None
    number = 0
    with stream:
        try:
            for line in stream:
                number += 1
                text = line.decode("utf-8").removesuffix("\n").removesuffix("\r")
                yield text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}, line {number}: not UTF-8 (byte {error.start + 1} is 0x{line[error.start]:02x}); "
                f"convert the file, for example with iconv -f ISO-8859-1 -t UTF-8"
            ) from None
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise InputError(f"{path}: not a whole gzip file ({error}); fetch it again") from None
