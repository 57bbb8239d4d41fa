"""Entailment: SNLI (Bowman et al. 2015) and SciTail (Khot, Sabharwal and Clark 2018), in their published JSON lines.

    fairseq-plugins prepare entailment --input snli_1.0 --output work/snli/data

SNLI's folder holds ``snli_1.0_train.jsonl`` and its peers; SciTail's ``snli_format`` has ``scitail_1.0_train.txt`` in
the same form. Tokens and part-of-speech tags are those of the sentences' parses; ``--no-tags`` leaves the tags out.
Pairs whose gold label is ``-`` are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.labelled_tables import read_table
from fairseq_plugins.corpora.labelled_texts import (
    Example,
    LabelledTextsPreparation,
    add_text_arguments,
    common_choices,
    prepare,
)
from fairseq_plugins.errors import InputError

COLUMNS = ("sentence1_parse", "sentence2_parse", "gold_label")
SPLITS = {"train": "train", "valid": "dev", "test": "test"}
_LEAF = re.compile(r"\(([^\s()]+) ([^\s()]+)\)")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def leaves(parse: str) -> tuple[str, str]:
    """The tokens of a parse in brackets, and their tags."""
    found = _LEAF.findall(parse)
    return " ".join(_BRACKETS.get(token, token) for _, token in found), " ".join(tag for tag, _ in found)


def read(paths: Sequence[Path]) -> Iterator[Example]:
    """The pairs of files.

    Raises:
        InputError: a line is no JSON, or has no parse or label; the message names file and line.
    """
    for place, (*parses, label) in read_table(paths, COLUMNS, None):
        texts, tags = zip(*map(leaves, parses), strict=True)
        # What annotators did not agree on may have no parse; it is left out by its label.
        yield Example(texts, label.strip(), place, tags=tags)


def find(folder: Path, split: str) -> Path:
    """The one file of a split.

    Raises:
        InputError: there is none, or several.
    """
    found = sorted([*folder.glob(f"*_{split}.jsonl"), *folder.glob(f"*_{split}.txt")])
    # SNLI has the same pairs as a table, too.
    found = [path for path in found if path.suffix == ".jsonl"] or found
    if len(found) != 1:
        raise InputError(f"{folder}: one file of JSON lines for '{split}' was expected (snli_1.0_{split}.jsonl)")
    return found[0]


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare entailment",
        "Prepares SNLI or SciTail: does a premise entail a hypothesis?",
        ("--input snli_1.0 --output work/snli/data", "--input SciTailV1.1/snli_format --output work/scitail/data"),
    )
    options.add_argument("--input", type=Path, required=True, metavar="DIR", help="snli_1.0, or SciTail's snli_format")
    options.add_argument(
        "--no-tags",
        action="store_true",
        help="words alone: a model that reads part-of-speech tags cannot predict for plain text",
    )
    add_text_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    preparation = LabelledTextsPreparation(
        texts=["premise", "hypothesis"],
        given="tokens",
        tokenizer="treebank",
        lowercase=True,
        has_tags=not options.no_tags,
        dropped_labels=["-"],
        **common_choices(options),
    )
    inputs = {split: [find(options.input, name)] for split, name in SPLITS.items()}
    prepare(preparation, inputs, options.output, read, options.workers, options.vectors)
