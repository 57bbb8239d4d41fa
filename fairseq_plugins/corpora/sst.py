"""The Stanford Sentiment Treebank (Socher et al. 2013), whole sentences: SST-5 and SST-2.

    python -m fairseq_plugins.corpora.sst --input sst --classes 5 --output work/sst_5/data

The folder holds ``stsa.fine.{train,dev,test}`` and ``stsa.binary.{train,dev,test}``, lines of ``label text`` in tokens
and lower case. ``scripts/prepare_sst.sh`` runs this.
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
from fairseq_plugins.errors import report_input_errors

NAMES = {5: "fine", 2: "binary"}
SPLITS = {"train": "train", "valid": "dev", "test": "test"}


def main() -> None:
    """The command line: see ``--help``."""
    parser = argparse.ArgumentParser(prog="prepare_sst.sh", description="Prepares SST-5 or SST-2 for fairseq.")
    parser.add_argument("--input", type=Path, required=True, metavar="DIR", help="with stsa.fine.train and the others")
    parser.add_argument("--classes", type=int, choices=tuple(NAMES), default=5, help="default: 5")
    add_text_arguments(parser)
    arguments = parser.parse_args()
    preparation = LabelledTextsPreparation(
        texts=["sentence"],
        given="tokens",
        tokenizer="treebank",
        escape=True,
        lowercase=True,
        **common_choices(arguments),
    )
    inputs = {split: [arguments.input / f"stsa.{NAMES[arguments.classes]}.{name}"] for split, name in SPLITS.items()}
    prepare(
        preparation,
        inputs,
        arguments.output,
        lambda paths: labelled_lines(paths, " "),
        arguments.workers,
        arguments.vectors,
    )


if __name__ == "__main__":
    report_input_errors(main)
