"""Gigaword headlines as Rush, Chopra and Weston (2015) processed them: the papers' summarisation benchmark.

    fairseq-plugins prepare gigaword --input sumdata --output work/gigaword/data

An article's first sentence is the source, its headline the target: 3.8 million pairs for training, 190 thousand for
validation, 2,000 for testing. The text comes in tokens and lower case, with ``#`` for every digit and ``unk`` (in some
copies ``<unk>``, in the test set ``UNK``) for rare words; nothing of that is undone. To the model all spellings of
``unk`` are fairseq's ``<unk>``, as are the words outside the dictionary; translations show it as ``unk``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.archives import add_archive_arguments, unpack
from fairseq_plugins.corpora.pairs import PairsPreparation, prepare
from fairseq_plugins.corpora.pipeline import add_run_arguments, note_other_sizes
from fairseq_plugins.corpora.subwords import add_bpe_arguments, check_bpe_arguments
from fairseq_plugins.errors import InputError
from fairseq_plugins.files import sha256

LANGUAGES = ("article", "title")
WORDS = 30_000
UNKNOWN_WORDS = ["unk", "UNK", "<unk>"]
NAMES = {
    "train": (("train.article.txt",), ("train.title.txt",)),
    "valid": (("valid.article.filter.txt", "valid.article.txt"), ("valid.title.filter.txt", "valid.title.txt")),
    "test": (("input.txt", "test.article.txt"), ("task1_ref0.txt", "test.title.txt")),
}
"""Split -> the names that its source and its target go by, the first found counts."""
TEST_FOLDER = "Giga"
"""The archive has three test sets of the same file names; this folder holds Gigaword's."""
PAIRS = {"train": 3_803_957, "valid": 189_651}
"""What the whole set has."""
UNPACKED_GIGABYTES = 10.0
"""Several times what the archive holds."""

_HEAD = 1 << 20  # bytes


def find(folder: Path, split: str) -> tuple[Path, Path] | None:
    """The source and the target file of a split anywhere in a folder, plain or ``.gz``; None where there is neither.

    Raises:
        InputError: one side is there and the other is not, or there are several.
    """
    source, target = (_find_side(folder, split, names) for names in NAMES[split])
    if source is not None and target is not None:
        return source, target
    for side, other, names in zip((source, target), (target, source), NAMES[split][::-1], strict=True):
        if side is not None and other is None:
            raise InputError(f"{side} is there, but not its other side, {' or '.join(names)}, in {folder}")
    return None


def _find_side(folder: Path, split: str, names: tuple[str, ...]) -> Path | None:
    for name in names:
        paths = sorted([*folder.rglob(name), *folder.rglob(f"{name}.gz")])
        if split == "test" and len(paths) > 1:
            paths = [path for path in paths if path.parent.name == TEST_FOLDER] or paths
        if len(paths) > 1:
            raise InputError(f"{folder} holds {name} several times ({paths[0]}, {paths[1]}): give the folder of one")
        if paths:
            return paths[0]
    return None


def check_line_ends(path: Path) -> None:
    """Refuses a file whose lines end in a carriage return alone: it would be one long line.

    Raises:
        InputError: it is such a file.
    """
    if path.suffix == ".gz":
        return
    with open(path, "rb") as stream:
        head = stream.read(_HEAD)
    if b"\r" in head.replace(b"\r\n", b""):
        line = head[: head.index(b"\r")].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: a carriage return within the line; convert with tr '\\r' '\\n'")


def extract(archive: Path, folder: Path, gigabytes: float = UNPACKED_GIGABYTES) -> Path:
    """Unpacks the text files of an archive, and returns their folder.

    Raises:
        InputError, OSError: see :func:`.archives.unpack`.
    """
    names = {name + end for split in NAMES.values() for side in split for name in side for end in ("", ".gz")}
    unpack(archive, folder, gigabytes, lambda member: member.isfile() and Path(member.name).name in names)
    return folder


def parser() -> CommandParser:
    """The command line."""
    options = CommandParser(
        "prepare gigaword",
        "Prepares Gigaword headlines (Rush et al. 2015) for fairseq: article -> title.",
        ("--input sumdata --output work/gigaword/data",),
    )
    options.add_argument(
        "--input",
        required=True,
        metavar="PATH",
        help="a folder with train.article.txt, train.title.txt, valid.article.filter.txt, ... (or .gz), or the archive",
    )
    options.add_argument(
        "--test",
        metavar="ARTICLES,TITLES[,TITLES...]",
        help="another test set, with one or several references for each article (DUC)",
    )
    options.add_argument(
        "--words",
        type=int,
        default=WORDS,
        metavar="N",
        help="types of each dictionary, fairseq's 4 special symbols among them; default: %(default)s",
    )
    options.add_argument(
        "--joined-dictionary", action="store_true", help="one dictionary for both sides (for --share-all-embeddings)"
    )
    options.add_argument(
        "--max-length",
        type=int,
        default=200,
        metavar="N",
        help="drop longer training pairs; default: %(default)s words",
    )
    add_archive_arguments(options, UNPACKED_GIGABYTES)
    add_bpe_arguments(options, size=30_000)
    add_run_arguments(options)
    options.set_defaults(bpe="none")
    return options


def main(arguments: Sequence[str]) -> None:
    """Prepares it."""
    options = parser().parse_args(arguments)
    check_bpe_arguments(parser(), options)
    if options.bpe != "none" and options.words != WORDS:
        raise InputError(f"--words {options.words} has no effect with --bpe {options.bpe}: give --bpe-size")
    path = Path(options.input)
    with tempfile.TemporaryDirectory() as temporary:
        origin = {}
        if path.is_dir():
            folder = path
        else:
            folder = extract(path, Path(temporary), options.max_unpacked)
            origin = {"archive": path.name, "sha256": sha256(path)}
        inputs, missing = {}, []
        for split in NAMES:
            if (pair := find(folder, split)) is not None:
                inputs[split] = pair
            else:
                missing.append(split)
        references = {}
        if options.test:
            files = [Path(file) for file in options.test.split(",")]
            if len(files) < 2:
                raise InputError(f"--test {options.test}: give the articles and at least one file of titles")
            inputs["test"], references["test"] = (files[0], files[1]), files[2:]
        for split in ("train", "valid"):
            if split not in inputs:
                names = " and ".join(names[0] for names in NAMES[split])
                raise InputError(f"{path} holds no {names}: give the folder or the archive that does")
        for file in [file for pair in inputs.values() for file in pair]:
            if not file.is_file():
                raise InputError(f"{file}: no such file")
            check_line_ends(file)
        if "test" not in inputs:
            print("note: no test set (Giga/input.txt, Giga/task1_ref0.txt): evaluate with --subset valid")
        steps = PairsPreparation(
            source_lang=LANGUAGES[0],
            target_lang=LANGUAGES[1],
            given="tokens",
            max_length=options.max_length,
            bpe=options.bpe,
            bpe_size=options.bpe_size,
            joined_words=options.bpe == "none" and options.joined_dictionary,
            separate_dictionaries=options.bpe != "none" and not options.joined_dictionary,
            dictionary_size=options.words if options.bpe == "none" else None,
            unknown_words=UNKNOWN_WORDS,
            metric="rouge",
            origin=origin,
        )
        prepared = prepare(steps, inputs, options.output, options.workers, references=references)
    note_other_sizes(prepared, "pairs", PAIRS, "read")
