"""TREC question classification (Voorhees 1999; Li and Roth 2002): 5,452 questions for training, 500 for testing.

    python -m fairseq_plugins.corpora.trec --train train_5500.label --test TREC_10.label --output work/trec/data

A line is ``NUM:dist How far is it from Denver to Aspen ?``; the label is the part before the colon (6 classes) or, with
``--fine``, all of it (50). A tenth of the training questions is held out for validation. ``scripts/prepare_trec.sh``
runs this.
"""

from __future__ import annotations

if __name__ == "__main__":
    from fairseq_plugins.startup import prepare_command

    prepare_command()

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairseq_plugins.corpora.labelled_lines import labelled_lines
from fairseq_plugins.corpora.labelled_texts import (
    Example,
    LabelledTextsPreparation,
    add_text_arguments,
    common_choices,
    prepare,
)
from fairseq_plugins.errors import InputError, report_input_errors


def read(paths: Sequence[Path], fine: bool = False) -> Iterator[Example]:
    """The questions of files, by coarse or fine label.

    Raises:
        InputError: a line has no label of the form ``NUM:dist``.
    """
    for example in labelled_lines(paths, " "):
        coarse, colon, _ = example.label.partition(":")
        if not colon:
            raise InputError(f"{example.place}: '{example.label}' is no label such as NUM:dist")
        yield example if fine else example._replace(label=coarse)


def main() -> None:
    """The command line: see ``--help``."""
    parser = argparse.ArgumentParser(prog="prepare_trec.sh", description="Prepares TREC's questions for fairseq.")
    parser.add_argument("--train", type=Path, required=True, metavar="FILE", help="train_5500.label")
    parser.add_argument("--test", type=Path, required=True, metavar="FILE", help="TREC_10.label")
    parser.add_argument("--fine", action="store_true", help="the 50 fine classes")
    add_text_arguments(parser)
    arguments = parser.parse_args()
    preparation = LabelledTextsPreparation(
        texts=["question"],
        given="tokens",
        tokenizer="treebank",
        lowercase=True,
        valid_share=0.1,
        label="fine" if arguments.fine else "coarse",
        **common_choices(arguments),
    )
    inputs = {"train": [arguments.train], "test": [arguments.test]}
    prepare(
        preparation,
        inputs,
        arguments.output,
        lambda paths: read(paths, arguments.fine),
        arguments.workers,
        arguments.vectors,
    )


if __name__ == "__main__":
    report_input_errors(main)
