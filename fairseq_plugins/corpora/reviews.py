"""The 16 review sets of Liu, Qiu and Huang (2017): products, films and books, each set alone.

    python -m fairseq_plugins.corpora.reviews --input amazon_reviews --set books --output work/reviews_books/data

The folder holds ``<set>.task.train`` and ``<set>.task.test`` (or ``.gz``), about 1,600 and 400 lines of ``label TAB
text``. 200 training reviews are held out for validation. One line of ``sports`` has no text, as published: it is left
out. ``scripts/prepare_reviews.sh`` runs this.
"""

from __future__ import annotations

if __name__ == "__main__":
    from fairseq_plugins.startup import prepare_command

    prepare_command()

import argparse
from pathlib import Path

from fairseq_plugins.corpora.labelled_lines import labelled_lines
from fairseq_plugins.corpora.labelled_texts import (
    LabelledTextsPreparation,
    add_text_arguments,
    common_choices,
    prepare,
)
from fairseq_plugins.errors import InputError, report_input_errors

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


def main() -> None:
    """The command line: see ``--help``."""
    parser = argparse.ArgumentParser(prog="prepare_reviews.sh", description="Prepares one of 16 review sets.")
    parser.add_argument("--input", type=Path, required=True, metavar="DIR", help="with books.task.train and the others")
    parser.add_argument("--set", choices=tuple(SETS), required=True, help="which of them")
    add_text_arguments(parser)
    arguments = parser.parse_args()
    preparation = LabelledTextsPreparation(
        texts=["review"],
        given="tokens",
        tokenizer="tweet" if arguments.set in UNSPLIT else "treebank",
        lowercase=True,
        valid_count=VALID,
        **common_choices(arguments),
    )
    inputs = {split: [find(arguments.input, f"{SETS[arguments.set]}.task.{split}")] for split in ("train", "test")}
    prepare(
        preparation,
        inputs,
        arguments.output,
        lambda paths: labelled_lines(paths, "\t", skips_empty=True),
        arguments.workers,
        arguments.vectors,
    )


if __name__ == "__main__":
    report_input_errors(main)
