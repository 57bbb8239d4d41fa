"""Lines that are a label and a text, as several data sets have them, in UTF-8 or Latin-1."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairseq_plugins.corpora.labelled_texts import Example
from fairseq_plugins.errors import InputError


def decoded_lines(path: Path) -> Iterator[str]:
    """The lines of a file, plain or ``.gz``, without their ends: UTF-8 or, where it is none, Latin-1.

    Raises:
        InputError: the file is missing or damaged.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, a text file was expected") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{path}: not a whole gzip file ({error}); fetch it again") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    lines = text.removeprefix("\ufeff").split("\n")
    yield from (line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1]))


def labelled_lines(paths: Sequence[Path], separator: str) -> Iterator[Example]:
    """``label SEPARATOR text`` of each line.

    Raises:
        InputError: a line has no text; the message names file and line.
    """
    for path in paths:
        for number, line in enumerate(decoded_lines(path), 1):
            label, found, text = line.strip(" ").partition(separator)
            place = f"{path}, line {number}"
            if not found or not text.strip():
                shown = "a tab" if separator == "\t" else "a space"
                raise InputError(f"{place}: 'label text' was expected, {shown} between them")
            yield Example((text,), label, place)
