"""Archives that are unpacked: how large they become is said before, and has a bound."""

from __future__ import annotations

import argparse
import tarfile
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


def members_within(
    packed: tarfile.TarFile, archive: Path, gigabytes: float, wanted: Callable[[tarfile.TarInfo], bool] = lambda _: True
) -> list[tarfile.TarInfo]:
    """Those members of an open archive that are wanted; says how large they are.

    Raises:
        InputError: together they are larger than ``gigabytes`` of 10^9 bytes. Nothing was unpacked.
    """
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
