"""The folder that a built-in corpus is written to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from fairseq_plugins.errors import InputError
from fairseq_plugins.files import atomic_directory


@contextlib.contextmanager
def corpus_folder(output: Path, names: Collection[str]) -> Iterator[Path]:
    """Yields a folder that takes the place of ``output`` when the block ends without an error.

    Args:
        output: may be there with an earlier corpus, which goes
        names: of all files that a built-in corpus has there

    Raises:
        InputError: ``output`` is a file, or holds something else, which would be lost.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file: name another folder for --output")
    if output.is_dir() and (others := sorted({*os.listdir(output)} - {*names})):
        raise InputError(f"{output} holds {others[0]}, which is not of this corpus: name another folder for --output")
    with atomic_directory(output) as folder:
        yield folder
