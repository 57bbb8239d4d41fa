"""What a run's scores are sums of, sentence by sentence, beside its record (``recorded_runs.py``)."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..files import atomic_file

LARGEST = 10_000
"""Rows that are kept of a set. Of a running text each token is one: they would be megabytes."""
SET = "set:"
"""Before the name of a set in the file."""


def write(path: Path, statistics: Mapping[str, np.ndarray]) -> None:
    """Writes them beside a record's file, in numbers as small as they allow; those of an earlier run go.

    Args:
        path: of the record
        statistics: set → (N, K); those of more than :data:`LARGEST` rows are not kept
    """
    file = path.with_suffix(".npz")
    kept = {name: rows for name, rows in statistics.items() if len(rows) <= LARGEST}
    if not kept:
        file.unlink(missing_ok=True)
        return
    with atomic_file(file, "wb") as stream:
        # A set may be called what savez_compressed calls an argument of its own.
        arrays: dict[str, Any] = {f"{SET}{name}": _smallest(rows) for name, rows in sorted(kept.items())}
        np.savez_compressed(stream, **arrays)


def _smallest(rows: np.ndarray) -> np.ndarray:
    """The same numbers, whole ones as integers that are large enough."""
    whole = rows.astype(np.int64)
    if not rows.size or not np.array_equal(whole, rows):
        return rows
    return whole.astype(np.result_type(*map(np.min_scalar_type, (whole.min(), whole.max()))))


def beside(path: Path) -> dict[str, np.ndarray]:
    """What :func:`write` wrote beside a record's file; empty where it wrote nothing.

    Raises:
        InputError: the file cannot be read.
    """
    file = path.with_suffix(".npz")
    if not file.exists():
        return {}
    try:
        with np.load(file) as archive:
            arrays = {name.removeprefix(SET): archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{file}: not statistics of sentences ({error}); record the run again") from None
    return {name: rows.astype(np.int64) if rows.dtype.kind in "iu" else rows for name, rows in arrays.items()}
