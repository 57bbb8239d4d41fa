"""The Stanford Sentiment Treebank (Socher et al. 2013), whole sentences: SST-5 and SST-2.

    fairseq-plugins prepare sst --input sst --classes 5 --output work/sst_5/data

The folder holds ``stsa.fine.{train,dev,test}`` and ``stsa.binary.{train,dev,test}``, lines of ``label text`` in tokens
and lower case.
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

NAMES = {5: "fine", 2: "binary"}
SPLITS = {"train": "train", "valid": "dev", "test": "test"}


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare sst",
        "Prepares the Stanford Sentiment Treebank, whole sentences: SST-5 or SST-2.",
        ("--input sst --classes 5 --output work/sst_5/data", "--input sst --classes 2 --output work/sst_2/data"),
    )
    options.add_argument("--input", type=Path, required=True, metavar="DIR", help="with stsa.fine.train and the others")
    options.add_argument("--classes", type=int, choices=tuple(NAMES), default=5, help="default: 5")
    add_text_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    preparation = LabelledTextsPreparation(
        texts=["sentence"],
        given="tokens",
        tokenizer="treebank",
        escape=True,
        lowercase=True,
        **common_choices(options),
    )
    inputs = {split: [options.input / f"stsa.{NAMES[options.classes]}.{name}"] for split, name in SPLITS.items()}
    prepare(
        preparation,
        inputs,
        options.output,
        lambda paths: labelled_lines(paths, " "),
        options.workers,
        options.vectors,
    )
