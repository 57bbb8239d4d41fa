"""The data sets of labelled texts, rows of the table :data:`.data_sets.DATA_SETS`.

    fairseq-plugins prepare trec --train train_5500.label --test TREC_10.label --output work/trec/data

A new one is a row, and a function that finds its files and says how they are read.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_plugins.corpora.data_set import DataSet, path_option
from fairseq_plugins.corpora.labelled_lines import labelled_lines
from fairseq_plugins.corpora.labelled_tables import read_table
from fairseq_plugins.corpora.labelled_texts import (
    Example,
    LabelledTextsPreparation,
    Reader,
    add_text_arguments,
    common_choices,
    prepare,
)
from fairseq_plugins.corpora.lines import read_aligned, text_writer
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import read_lines

SPLITS = {"train": "train", "valid": "dev", "test": "test"}
"""Split → what most data sets call it."""


class Source(NamedTuple):
    """What the options say of a data set.

    Attributes:
        files: split → its files
        read: the files of a split → its examples
        choices: fields of the record, beside those of the row
    """

    files: Mapping[str, Sequence[Path]]
    read: Reader
    choices: Mapping[str, Any] = {}


class TextSet(DataSet[Source]):
    """A data set of labelled texts."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_text_arguments(parser)

    def prepare(self, name: str, options: argparse.Namespace, folder: Path) -> None:
        source = self.source(options, folder)
        choices = {"normalization": ["nfc"], **self.choices, **source.choices, **common_choices(options)}
        preparation = LabelledTextsPreparation(**choices)
        prepare(preparation, source.files, options.output, source.read, options.workers, options.vectors)


# TREC question classification


def _trec(options: argparse.Namespace, _: Path) -> Source:
    """The questions, by coarse or fine label; ``NUM:dist How far is it from Denver to Aspen ?`` is a line."""

    def read(paths: Sequence[Path]) -> Iterator[Example]:
        for example in labelled_lines(paths, " "):
            coarse, colon, _ = example.label.partition(":")
            if not colon:
                raise InputError(f"{example.place}: '{example.label}' is no label such as NUM:dist")
            yield example if options.fine else example._replace(label=coarse)

    files = {"train": [options.train], "test": [options.test]}
    return Source(files, read, {"label": "fine" if options.fine else "coarse"})


# The Stanford Sentiment Treebank

SST_NAMES = {5: "fine", 2: "binary"}


def _sst(options: argparse.Namespace, _: Path) -> Source:
    """Whole sentences, in lines of ``label text``."""
    name = SST_NAMES[options.classes]
    files = {split: [options.input / f"stsa.{name}.{ending}"] for split, ending in SPLITS.items()}
    return Source(files, lambda paths: labelled_lines(paths, " "))


# IMDb


def _imdb(options: argparse.Namespace, folder: Path) -> Source:
    """The reviews, which lie in a file each: those of a split are gathered in one, whose checksum stands for them."""

    def read(paths: Sequence[Path]) -> Iterator[Example]:
        for path in paths:
            for line in read_lines(path):
                label, name, text = json.loads(line)
                yield Example((text,), label, str(options.input / name))

    return Source({split: [_gather_reviews(options.input, split, folder)] for split in ("train", "test")}, read)


def _gather_reviews(folder: Path, split: str, output: Path) -> Path:
    """Writes a JSON list of label, name, text a line.

    Raises:
        InputError: a folder is missing or empty, or a review is no text.
    """
    path = output / f"{split}.jsonl"
    with text_writer(path) as stream:
        for label in "neg", "pos":
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


# The 16 review sets of Liu, Qiu and Huang

REVIEWS = {
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
UNSPLIT_REVIEWS = ("imdb", "mr")
"""The sets whose tokens have "isn't" whole; the others have ``is n't``."""


def _reviews(options: argparse.Namespace, _: Path) -> Source:
    """Lines of ``label TAB text``. One line of ``sports`` has no text, as published: it is left out."""

    def file(split: str) -> Path:
        path = options.input / f"{REVIEWS[options.set]}.task.{split}"
        packed = path.with_name(f"{path.name}.gz")
        if not path.is_file() and not packed.is_file():
            raise InputError(f"{path}: no such file, nor {packed.name}")
        return path if path.is_file() else packed

    return Source(
        {split: [file(split)] for split in ("train", "test")},
        read_reviews,
        {"tokenizer": "tweet" if options.set in UNSPLIT_REVIEWS else "treebank"},
    )


def read_reviews(paths: Sequence[Path]) -> Iterator[Example]:
    """The reviews of files."""
    return labelled_lines(paths, "\t", skips_empty=True)


# SNLI and SciTail

_LEAF = re.compile(r"\(([^\s()]+) ([^\s()]+)\)")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def _entailment(options: argparse.Namespace, _: Path) -> Source:
    """Pairs in JSON lines, with the tokens and part-of-speech tags of their parses."""

    def file(ending: str) -> Path:
        tables = sorted(options.input.glob(f"*_{ending}.txt"))
        # SNLI has the same pairs as a table, too.
        files = sorted(options.input.glob(f"*_{ending}.jsonl")) or tables
        if len(files) != 1:
            raise InputError(
                f"{options.input}: one file of JSON lines for '{ending}' was expected (snli_1.0_{ending}.jsonl)"
            )
        return files[0]

    files = {split: [file(ending)] for split, ending in SPLITS.items()}
    return Source(files, _read_parsed_pairs, {"has_tags": not options.no_tags})


def _read_parsed_pairs(paths: Sequence[Path]) -> Iterator[Example]:
    columns = ("sentence1_parse", "sentence2_parse", "gold_label")
    for place, (*parses, label) in read_table(paths, columns, None):
        texts, tags = zip(*map(_leaves, parses), strict=True)
        # What annotators did not agree on may have no parse; it is left out by its label.
        yield Example(texts, label.strip(), place, tags=tags)


def _leaves(parse: str) -> tuple[str, str]:
    """The tokens of a parse in brackets, and their tags."""
    pairs = _LEAF.findall(parse)
    return " ".join(_BRACKETS.get(token, token) for _, token in pairs), " ".join(tag for tag, _ in pairs)


# WikiQA and TrecQA

CANDIDATE_FILES = ("a.toks", "b.toks", "sim.txt", "id.txt")
"""Questions, candidates, labels and the questions' numbers."""
CANDIDATE_FOLDERS = {"train": ("train", "train-all"), "valid": ("dev", "raw-dev"), "test": ("test", "raw-test")}


def _answer_selection(options: argparse.Namespace, _: Path) -> Source:
    """WikiQA's tables as published, or either set in the layout of the castorini data."""
    tables = {split: [options.input / f"WikiQA-{names[0]}.tsv"] for split, names in CANDIDATE_FOLDERS.items()}
    choices = {"drops_all_right": options.clean}
    if all(path.is_file() for [path] in tables.values()):
        return Source(tables, _read_wikiqa, {**choices, "given": "raw", "tokenizer": "moses"})
    files = {split: _candidate_files(options.input, names) for split, names in CANDIDATE_FOLDERS.items()}
    return Source(files, _read_candidates, {**choices, "given": "tokens", "tokenizer": "treebank"})


def _candidate_files(folder: Path, names: Sequence[str]) -> list[Path]:
    for name in names:
        files = [folder / name / file for file in CANDIDATE_FILES]
        if all(path.is_file() for path in files):
            return files
    raise InputError(
        f"{folder}: neither WikiQA-{names[0]}.tsv nor a folder '{names[0]}' with {', '.join(CANDIDATE_FILES)} is there"
    )


def _read_candidates(paths: Sequence[Path]) -> Iterator[Example]:
    for number, (question, candidate, label, group) in enumerate(read_aligned(paths), 1):
        yield Example((question, candidate), label.strip(), f"{paths[1]}, line {number}", group.strip())


def _read_wikiqa(paths: Sequence[Path]) -> Iterator[Example]:
    columns = ("Question", "Sentence", "Label", "QuestionID")
    for place, (question, candidate, label, group) in read_table(paths, columns, "\t"):
        yield Example((question, candidate), label.strip(), place, group.strip())


# Those that come in tokens, whose tokenizer is the one that comes nearest to theirs.
_TREEBANK_TOKENS = {"given": "tokens", "tokenizer": "treebank", "lowercase": True}

TEXT_SETS = {
    "trec": TextSet(
        "TREC's questions",
        _trec,
        options={
            "--train": path_option("FILE", "train_5500.label"),
            "--test": path_option("FILE", "TREC_10.label"),
            "--fine": {"action": "store_true", "help": "the 50 fine classes"},
        },
        choices={"texts": ["question"], **_TREEBANK_TOKENS, "valid_share": 0.1},
        description="Prepares TREC's questions (Voorhees 1999; Li and Roth 2002): 6 classes, or 50 with --fine. A "
        "tenth of the training questions is held out for validation.",
        examples=("--train train_5500.label --test TREC_10.label --output work/trec/data",),
    ),
    "sst": TextSet(
        "the Stanford Sentiment Treebank",
        _sst,
        options={
            "--input": path_option("DIR", "with stsa.fine.train and the others"),
            "--classes": {"type": int, "choices": tuple(SST_NAMES), "default": 5, "help": "default: 5"},
        },
        choices={"texts": ["sentence"], **_TREEBANK_TOKENS, "escape": True},
        description="Prepares the Stanford Sentiment Treebank (Socher et al. 2013), whole sentences: SST-5 or SST-2.",
        examples=(
            "--input sst --classes 5 --output work/sst_5/data",
            "--input sst --classes 2 --output work/sst_2/data",
        ),
    ),
    "imdb": TextSet(
        "IMDb's reviews",
        _imdb,
        options={"--input": path_option("DIR", "aclImdb, with train/pos and so on")},
        choices={"texts": ["review"], "lowercase": True, "valid_share": 0.1},
        description="Prepares IMDb's reviews of films (Maas et al. 2011), out of the folders as they are published. A "
        "tenth of the training reviews is held out for validation.",
        examples=("--input aclImdb --max-length 400 --words 30000 --output work/imdb/data",),
        notes="The limits are those of configs/imdb.",
    ),
    "reviews": TextSet(
        "one of 16 sets of reviews",
        _reviews,
        options={
            "--input": path_option("DIR", "with books.task.train and the others"),
            "--set": {"choices": tuple(REVIEWS), "required": True, "help": "which of them"},
        },
        choices={"texts": ["review"], **_TREEBANK_TOKENS, "valid_count": 200},
        description="Prepares one of the 16 review sets of Liu, Qiu and Huang (2017): products, films and books. 200 "
        "training reviews are held out for validation.",
        examples=("--input amazon_reviews --set books --max-length 400 --output work/reviews_books/data",),
        notes="--max-length 400 is what configs/reviews takes.",
    ),
    "entailment": TextSet(
        "SNLI or SciTail",
        _entailment,
        options={
            "--input": path_option("DIR", "snli_1.0, or SciTail's snli_format"),
            "--no-tags": {
                "action": "store_true",
                "help": "words alone: a model that reads part-of-speech tags cannot predict for plain text",
            },
        },
        choices={"texts": ["premise", "hypothesis"], **_TREEBANK_TOKENS, "dropped_labels": ["-"]},
        description="Prepares SNLI (Bowman et al. 2015) or SciTail (Khot, Sabharwal and Clark 2018): does a premise "
        "entail a hypothesis? Pairs whose gold label is - are left out.",
        examples=(
            "--input snli_1.0 --output work/snli/data",
            "--input SciTailV1.1/snli_format --output work/scitail/data",
        ),
    ),
    "answer_selection": TextSet(
        "WikiQA or TrecQA",
        _answer_selection,
        options={
            "--input": path_option("DIR", "the folder of the set"),
            "--clean": {
                "action": "store_true",
                "help": "TrecQA's clean setting (Rao, He and Lin 2016): held-out questions with right candidates alone "
                "are left out too",
            },
        },
        choices={"texts": ["question", "candidate"], "lowercase": True, "is_ranking": True, "metric": "ranking"},
        description="Prepares WikiQA (Yang, Yih and Meek 2015) or TrecQA (Wang, Smith and Mitamura 2007): questions "
        "with candidates to rank. Questions without a right candidate are left out.",
        examples=("--input wikiqa --output work/wikiqa/data", "--input trecqa --clean --output work/trecqa/data"),
        notes="The folder holds WikiQA-train.tsv, WikiQA-dev.tsv and WikiQA-test.tsv, or folders train, dev and test\n"
        "with a.toks, b.toks, sim.txt and id.txt each.",
    ),
}
