"""Penn Treebank as Mikolov et al. (2010) processed it, words or characters, the papers' benchmark of language models.

    fairseq-plugins prepare ptb --input ptb --output work/ptb/data
    fairseq-plugins prepare ptb --input ptb --characters --output work/ptb_characters/data

The text is the LDC's and must be given: ``ptb.train.txt``, ``ptb.valid.txt`` and
``ptb.test.txt``, or ``ptb.char.train.txt`` and so on, whose characters are between spaces and whose spaces are ``_``;
plain or ``.gz``. Characters are made of either: they are the same. The spaces around a line of words are no tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.pipeline import add_run_arguments, note_other_sizes
from fairseq_plugins.corpora.running_text import METRICS, RunningTextPreparation, RunningTextRun
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines

TOKENS = {
    "words": {"train": 929_589, "valid": 73_760, "test": 82_430},
    "characters": {"train": 5_017_482, "valid": 393_042, "test": 442_423},
}
"""Of the papers' sets, with the lines' ends."""


def set_files(folder: Path, characters: bool) -> dict[str, Path]:
    """The file of each set.

    Raises:
        InputError: one is missing.
    """
    stems = ["ptb.{}.txt", "ptb.char.{}.txt"] if characters else ["ptb.{}.txt"]
    files = {}
    for split in ("train", "valid", "test"):
        names = [stem.format(split) + packed for stem in stems for packed in ("", ".gz")]
        paths = [folder / name for name in names if (folder / name).is_file()]
        if not paths:
            raise InputError(f"{folder}: there is none of {', '.join(names)}: give the folder that holds them")
        files[split] = paths[0]
    return files


def read_text(path: Path) -> Iterator[str]:
    """The lines of a set as text; of characters between spaces, the words that they make up.

    Raises:
        InputError: a line of a file of characters has longer tokens; the message names file and line.
    """
    if ".char." not in path.name:
        yield from read_lines(path)
        return
    blank = 0
    for number, line in enumerate(read_lines(path), start=1):
        characters = line.split()
        if any(len(character) > 1 for character in characters):
            raise InputError(f"{path}, line {number}: single characters between spaces are expected in this file")
        if not characters:
            # The files end with a space after the last line's end, which is no line.
            blank += 1
            continue
        yield from [""] * blank
        blank = 0
        yield "".join(characters).replace("_", " ")


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare ptb",
        "Prepares Penn Treebank as Mikolov et al. (2010) processed it, the papers' benchmark of language models.",
        ("--input ptb --output work/ptb/data", "--input ptb --characters --output work/ptb_characters/data"),
        "The text is the LDC's and must be given.",
    )
    options.add_argument("--input", required=True, type=Path, metavar="DIR", help="holds ptb.train.txt and so on")
    options.add_argument("--characters", action="store_true", help="a token is a character, not a word")
    add_run_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    units = "characters" if options.characters else "words"
    preparation = RunningTextPreparation(
        units=units,
        unknown_words=[] if options.characters else ["<unk>"],
        metric=METRICS[units],
    )
    inputs = set_files(options.input, options.characters)
    prepared = RunningTextRun(preparation, inputs, options.output, options.workers, read_text).prepare()
    note_other_sizes(prepared, "tokens", TOKENS[units], "tokens")
