"""What systems wrote for one test set, as the commands that compare them are given it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..files import read_lines
from ..scoring.bleu import TOKENIZERS
from .significance import SEED


@dataclass(frozen=True)
class Systems:
    """A test set of N sentences and what systems made of it.

    Attributes:
        source: N sentences.
        references: one or several for each: lists of N.
        outputs: N sentences of each system, by its name, in the order that was given.
    """

    source: list[str]
    references: list[list[str]]
    outputs: dict[str, list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that name a test set's files, and how BLEU reads them."""
    parser.add_argument("--source", required=True, metavar="FILE", type=Path, help="the sentences, one on each line")
    parser.add_argument(
        "--reference", required=True, nargs="+", metavar="FILE", type=Path, help="what they should become"
    )
    parser.add_argument(
        "--system",
        required=True,
        nargs="+",
        action="extend",
        metavar="NAME=FILE",
        help="what a system made of them; others are compared with the first",
    )
    parser.add_argument(
        "--tokenize", choices=TOKENIZERS, help="none (default): BLEU of the tokens as they are; 13a: sacreBLEU of text"
    )
    parser.add_argument("--lowercase", action="store_true", help="BLEU without regard to case")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the bootstrap (default: {SEED})")


def load(arguments: argparse.Namespace) -> Systems:
    """Reads the files that the options of :func:`add_arguments` name.

    Raises:
        InputError: a file is missing, empty, or has another number of lines than the source; a system has no name, or
            another's; the seed is below 1.
    """
    if arguments.seed < 1:
        raise InputError(f"--seed {arguments.seed}: the bootstrap takes seeds from 1 on; give another")
    files: dict[str, Path] = {}
    for given in arguments.system:
        name, separator, file = given.partition("=")
        if not (name and separator and file):
            raise InputError(f"--system {given}: not NAME=FILE; write for example --system MC-RNN=test.tok.en")
        if name in files:
            raise InputError(f"--system {given}: {name} is {files[name]} already; give every system its own name")
        files[name] = Path(file)
    source = list(read_lines(arguments.source))
    if not source:
        raise InputError(f"{arguments.source}: empty; give the sentences of a test set")
    references = [_parallel(file, arguments.source, len(source)) for file in arguments.reference]
    return Systems(
        source, references, {name: _parallel(file, arguments.source, len(source)) for name, file in files.items()}
    )


def _parallel(file: Path, source: Path, count: int) -> list[str]:
    """The lines of a file, as many as the source has."""
    lines = list(read_lines(file))
    if len(lines) != count:
        raise InputError(
            f"{file} has {len(lines):,} lines, but {source} has {count:,}; each line must belong to that of the source"
        )
    return lines
