"""Archives that are unpacked: how large they become is said before, and has a bound."""

from __future__ import annotations

import argparse
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

from fairseq_plugins.errors import InputError

_GIGABYTE = 10**9


def add_archive_arguments(parser: argparse.ArgumentParser, gigabytes: float) -> None:
    """The option of every command that unpacks an archive."""
    parser.add_argument(
        "--max-unpacked",
        type=float,
        default=gigabytes,
        metavar="GB",
        help="refuse an archive that holds more; default: %(default)g gigabytes",
    )


def unpack(
    archive: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    gigabytes: float,
    wanted: Callable[[tarfile.TarInfo], bool] = lambda _: True,
) -> None:
    """Unpacks those members of a tar archive, packed or not, that are wanted; says before how large they are.

    Raises:
        InputError: the archive is missing, damaged or none, the members hold more than ``gigabytes`` of 10^9 bytes, or
            one wants to be written outside of ``folder``.
        OSError: what is unpacked cannot be written: the disk is full.
    """
    archive = Path(archive)
    if not hasattr(tarfile, "data_filter"):
        raise InputError("this Python unpacks archives without a check of their names: use 3.10.12, 3.11.4 or later")
    try:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, _members_within(packed, archive, gigabytes, wanted), filter="data")
    except FileNotFoundError:
        raise InputError(f"{archive}: no such file or folder") from None
    except IsADirectoryError:
        raise InputError(f"{archive} is a folder, an archive was expected") from None
    except tarfile.FilterError as error:
        raise InputError(f"{archive} is not safe to unpack: {error}") from None
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        # Of what is damaged Python's modules raise OSError too, without a number.
        if getattr(error, "errno", None) is not None:
            raise
        # Of what is no archive at all Python lists, line by line, which kinds it is not.
        why = str(error).partition("\n")[0].rstrip(":")
        raise InputError(f"{archive}: not a whole archive ({why}); fetch it again") from None


def _members_within(
    packed: tarfile.TarFile, archive: Path, gigabytes: float, wanted: Callable[[tarfile.TarInfo], bool]
) -> list[tarfile.TarInfo]:
    members, total = [], 0
    for member in packed:
        if not wanted(member):
            continue
        members.append(member)
        total += member.size
        # At once: what follows may be very long.
        if total > gigabytes * _GIGABYTE:
            reached = f"{total / _GIGABYTE:,.1f} GB with {member.name}"
            raise InputError(
                f"{archive}: unpacked it is more than {gigabytes:g} GB ({reached}): "
                f"if that is what you expect, raise --max-unpacked"
            )
    print(f"{archive}: unpacking {len(members):,} files, {total / 10**6:,.1f} MB", flush=True)
    return members
