"""Lines that are a label and a text, as several data sets have them, in UTF-8 or Latin-1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fairseq_plugins.corpora.labelled_texts import Example
from fairseq_plugins.corpora.lines import read_sentences
from fairseq_plugins.errors import InputError


def decoded_lines(path: Path) -> Iterator[str]:
    """The lines of a file, plain or ``.gz``: each in UTF-8 or, where it is none, in Latin-1. A file with lines of both
    is warned of.

    Raises:
        InputError: the file is missing, damaged or no text.
    """
    first, others, number = 0, 0, 0
    for number, line in enumerate(read_sentences(path, "surrogateescape"), 1):
        content = line.encode("utf-8", "surrogateescape")
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            line = content.decode("latin-1")
            first = first or number
        else:
            others += not line.isascii()
        yield line
    if first and others:
        print(f"warning: {path}, line {first}: not UTF-8, as {others:,} others are; it is taken for Latin-1")


def labelled_lines(paths: Sequence[Path], separator: str, skips_empty: bool = False) -> Iterator[Example]:
    """``label SEPARATOR text`` of each line.

    Args:
        paths: the files
        separator: a tab or a space
        skips_empty: a text that is empty is left out, with a warning

    Raises:
        InputError: a line has no text; the message names file and line.
    """
    for path in paths:
        for number, line in enumerate(decoded_lines(path), 1):
            label, gap, text = line.strip(" ").partition(separator)
            place = f"{path}, line {number}"
            if not gap:
                shown = "a tab" if separator == "\t" else "a space"
                raise InputError(f"{place}: 'label text' was expected, {shown} between them")
            if not text.strip():
                if not skips_empty:
                    raise InputError(
                        f"{place}: there is no text after the label {label!r}; write it or remove the line"
                    )
                print(f"warning: {place}: there is no text after the label {label!r}; the line is left out")
                continue
            yield Example((text,), label, place)
