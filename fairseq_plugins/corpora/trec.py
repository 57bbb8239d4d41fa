"""TREC question classification (Voorhees 1999; Li and Roth 2002): 5,452 questions for training, 500 for testing.

    fairseq-plugins prepare trec --train train_5500.label --test TREC_10.label --output work/trec/data

A line is ``NUM:dist How far is it from Denver to Aspen ?``; the label is the part before the colon (6 classes) or, with
``--fine``, all of it (50). A tenth of the training questions is held out for validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.labelled_lines import labelled_lines
from fairseq_plugins.corpora.labelled_texts import (
    Example,
    LabelledTextsPreparation,
    add_text_arguments,
    common_choices,
    prepare,
)
from fairseq_plugins.errors import InputError


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


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare trec",
        "Prepares TREC's questions: 6 classes, or 50 with --fine.",
        ("--train train_5500.label --test TREC_10.label --output work/trec/data",),
    )
    options.add_argument("--train", type=Path, required=True, metavar="FILE", help="train_5500.label")
    options.add_argument("--test", type=Path, required=True, metavar="FILE", help="TREC_10.label")
    options.add_argument("--fine", action="store_true", help="the 50 fine classes")
    add_text_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    preparation = LabelledTextsPreparation(
        texts=["question"],
        given="tokens",
        tokenizer="treebank",
        lowercase=True,
        valid_share=0.1,
        label="fine" if options.fine else "coarse",
        **common_choices(options),
    )
    inputs = {"train": [options.train], "test": [options.test]}
    prepare(
        preparation,
        inputs,
        options.output,
        lambda paths: read(paths, options.fine),
        options.workers,
        options.vectors,
    )
