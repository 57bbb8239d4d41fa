"""IMDb (Maas et al. 2011): 25,000 reviews of films for training and as many for testing, in the folders as published.

    fairseq-plugins prepare imdb --input aclImdb --output work/imdb/data

``train/pos``, ``train/neg``, ``test/pos`` and ``test/neg`` hold a file for each review. A tenth of the training reviews
is held out for validation.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.labelled_texts import (
    Example,
    LabelledTextsPreparation,
    add_text_arguments,
    common_choices,
    prepare,
)
from fairseq_plugins.corpora.lines import text_writer
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines

LABELS = ("neg", "pos")


def gather(folder: Path, split: str, output: Path) -> Path:
    """The reviews of a split in one file, whose checksum stands for them all: a JSON list of label, name, text a line.

    Raises:
        InputError: a folder is missing or empty, or a review is no text.
    """
    path = output / f"{split}.jsonl"
    with text_writer(path) as stream:
        for label in LABELS:
            files = sorted((folder / split / label).glob("*.txt"))
            if not files:
                raise InputError(f"{folder / split / label}: no folder of reviews there; give the folder aclImdb")
            for file in files:
                try:
                    text = file.read_text(encoding="utf-8")
                except UnicodeDecodeError:
                    raise InputError(f"{file}: not UTF-8; fetch it again") from None
                # Not where the folder is: it says nothing of the reviews.
                name = str(file.relative_to(folder))
                stream.write(json.dumps([label, name, text.replace("<br />", " ")]) + "\n")
    return path


def read(paths: Sequence[Path], folder: Path) -> Iterator[Example]:
    """The reviews of files that :func:`gather` wrote of ``folder``."""
    for path in paths:
        for line in read_lines(path):
            label, name, text = json.loads(line)
            yield Example((text,), label, str(folder / name))


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare imdb",
        "Prepares IMDb's reviews of films, out of the folders as they are published.",
        ("--input aclImdb --max-length 400 --words 30000 --output work/imdb/data",),
        "The limits are those of configs/imdb.",
    )
    options.add_argument("--input", type=Path, required=True, metavar="DIR", help="aclImdb, with train/pos and so on")
    add_text_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    preparation = LabelledTextsPreparation(texts=["review"], lowercase=True, valid_share=0.1, **common_choices(options))
    with tempfile.TemporaryDirectory() as temporary:
        inputs = {split: [gather(options.input, split, Path(temporary))] for split in ("train", "test")}
        of_folder = functools.partial(read, folder=options.input)
        prepare(preparation, inputs, options.output, of_folder, options.workers, options.vectors)
