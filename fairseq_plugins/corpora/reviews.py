"""The 16 review sets of Liu, Qiu and Huang (2017): products, films and books, each set alone.

    fairseq-plugins prepare reviews --input amazon_reviews --set books --output work/reviews_books/data

The folder holds ``<set>.task.train`` and ``<set>.task.test`` (or ``.gz``), about 1,600 and 400 lines of ``label TAB
text``. 200 training reviews are held out for validation. One line of ``sports`` has no text, as published: it is left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.labelled_lines import labelled_lines
from fairseq_plugins.corpora.labelled_texts import (
    LabelledTextsPreparation,
    add_text_arguments,
    common_choices,
    prepare,
)
from fairseq_plugins.errors import InputError

SETS = {
    "camera": "camera_photo",
    "video": "video",
    "health": "health_personal_care",
    "music": "music",
    "kitchen": "kitchen_housewares",
    "dvd": "dvd",
    "toys": "toys_games",
    "baby": "baby",
    "books": "books",
    "imdb": "imdb",
    "mr": "MR",
    "apparel": "apparel",
    "magazines": "magazines",
    "electronics": "electronics",
    "sports": "sports_outdoors",
    "software": "software",
}
"""The set → the name of its files, in the order of RCRN's Table 1."""
UNSPLIT = ("imdb", "mr")
"""The sets whose tokens have "isn't" whole; the others have ``is n't``."""
VALID = 200


def find(folder: Path, name: str) -> Path:
    """A file of the folder, plain or packed.

    Raises:
        InputError: it is not there.
    """
    for path in folder / name, folder / f"{name}.gz":
        if path.is_file():
            return path
    raise InputError(f"{folder / name}: no such file, nor {name}.gz")


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare reviews",
        "Prepares one of the 16 review sets of Liu, Qiu and Huang (2017).",
        ("--input amazon_reviews --set books --max-length 400 --output work/reviews_books/data",),
        "--max-length 400 is what configs/reviews takes.",
    )
    options.add_argument(
        "--input", type=Path, required=True, metavar="DIR", help="with books.task.train and the others"
    )
    options.add_argument("--set", choices=tuple(SETS), required=True, help="which of them")
    add_text_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    preparation = LabelledTextsPreparation(
        texts=["review"],
        given="tokens",
        tokenizer="tweet" if options.set in UNSPLIT else "treebank",
        lowercase=True,
        valid_count=VALID,
        **common_choices(options),
    )
    inputs = {split: [find(options.input, f"{SETS[options.set]}.task.{split}")] for split in ("train", "test")}
    prepare(
        preparation,
        inputs,
        options.output,
        lambda paths: labelled_lines(paths, "\t", skips_empty=True),
        options.workers,
        options.vectors,
    )
