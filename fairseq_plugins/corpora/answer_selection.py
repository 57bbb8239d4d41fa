"""Answer selection: WikiQA (Yang, Yih and Meek 2015) and TrecQA (Wang, Smith and Mitamura 2007).

    fairseq-plugins prepare answer_selection --input wikiqa --output work/wikiqa/data

A question has candidates, of which 1 answers it and 0 does not. The folder holds WikiQA as published
(``WikiQA-train.tsv``, …), or either set in the layout of the castorini data: folders ``train``, ``dev`` and ``test``,
each with ``a.toks``, ``b.toks``, ``sim.txt`` and ``id.txt``. Questions without a right candidate are left out; with
``--clean``, TrecQA's setting (Rao, He and Lin 2016), held-out questions with right candidates alone are too.
"""

from __future__ import annotations

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
from fairseq_plugins.corpora.lines import read_aligned
from fairseq_plugins.errors import InputError

FILES = ("a.toks", "b.toks", "sim.txt", "id.txt")
"""Questions, candidates, labels and the questions' numbers."""
COLUMNS = ("Question", "Sentence", "Label", "QuestionID")
FOLDERS = {"train": ("train", "train-all"), "valid": ("dev", "raw-dev"), "test": ("test", "raw-test")}


def read_folder(paths: Sequence[Path]) -> Iterator[Example]:
    """The candidates of the files :data:`FILES`."""
    for number, (question, candidate, label, group) in enumerate(read_aligned(paths), 1):
        yield Example((question, candidate), label.strip(), f"{paths[1]}, line {number}", group.strip())


def read_published(paths: Sequence[Path]) -> Iterator[Example]:
    """The candidates of WikiQA's tables."""
    for place, (question, candidate, label, group) in read_table(paths, COLUMNS, "\t"):
        yield Example((question, candidate), label.strip(), place, group.strip())


def find(folder: Path) -> tuple[dict[str, list[Path]], bool]:
    """The files of each split, and whether they are WikiQA's published ones.

    Raises:
        InputError: the folder has neither layout.
    """
    published = {split: [folder / f"WikiQA-{name}.tsv"] for split, (name, _) in FOLDERS.items()}
    if all(path.is_file() for [path] in published.values()):
        return published, True
    found = {}
    for split, names in FOLDERS.items():
        for name in names:
            files = [folder / name / file for file in FILES]
            if all(path.is_file() for path in files):
                found[split] = files
                break
        else:
            raise InputError(
                f"{folder}: neither WikiQA-{names[0]}.tsv nor a folder '{names[0]}' with {', '.join(FILES)} is there"
            )
    return found, False


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare answer_selection",
        "Prepares WikiQA or TrecQA: questions with candidates to rank.",
        ("--input wikiqa --output work/wikiqa/data", "--input trecqa --clean --output work/trecqa/data"),
        "The folder holds WikiQA-train.tsv, WikiQA-dev.tsv and WikiQA-test.tsv, or folders train, dev and test\n"
        "with a.toks, b.toks, sim.txt and id.txt each.",
    )
    options.add_argument("--input", type=Path, required=True, metavar="DIR", help="the folder of the set")
    options.add_argument("--clean", action="store_true", help="TrecQA's clean setting")
    add_text_arguments(options)
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    inputs, is_published = find(options.input)
    preparation = LabelledTextsPreparation(
        texts=["question", "candidate"],
        given="raw" if is_published else "tokens",
        tokenizer="moses" if is_published else "treebank",
        lowercase=True,
        is_ranking=True,
        drops_all_right=options.clean,
        metric="ranking",
        **common_choices(options),
    )
    read = read_published if is_published else read_folder
    prepare(preparation, inputs, options.output, read, options.workers, options.vectors)
