"""IMDb (Maas et al. 2011): 25,000 reviews of films for training and as many for testing, in the folders as published.

    python -m fairseq_plugins.corpora.imdb --input aclImdb --output work/imdb/data

``train/pos``, ``train/neg``, ``test/pos`` and ``test/neg`` hold a file for each review. A tenth of the training reviews
is held out for validation. ``scripts/prepare_imdb.sh`` runs this.
"""

from __future__ import annotations

if __name__ == "__main__":
    from fairseq_plugins.startup import prepare_command

    prepare_command()

import argparse
import functools
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairseq_plugins.corpora.labelled_texts import (
    Example,
    LabelledTextsPreparation,
    add_text_arguments,
    common_choices,
    prepare,
)
from fairseq_plugins.corpora.lines import text_writer
from fairseq_plugins.errors import InputError, report_input_errors
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


def main() -> None:
    """The command line: see ``--help``."""
    parser = argparse.ArgumentParser(prog="prepare_imdb.sh", description="Prepares IMDb's reviews for fairseq.")
    parser.add_argument("--input", type=Path, required=True, metavar="DIR", help="aclImdb, with train/pos and so on")
    add_text_arguments(parser)
    arguments = parser.parse_args()
    preparation = LabelledTextsPreparation(
        texts=["review"], lowercase=True, valid_share=0.1, **common_choices(arguments)
    )
    with tempfile.TemporaryDirectory() as temporary:
        inputs = {split: [gather(arguments.input, split, Path(temporary))] for split in ("train", "test")}
        of_folder = functools.partial(read, folder=arguments.input)
        prepare(preparation, inputs, arguments.output, of_folder, arguments.workers, arguments.vectors)


if __name__ == "__main__":
    report_input_errors(main)
