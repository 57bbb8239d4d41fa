"""The built-in corpora, which need no download: ``python -m fairseq_plugins.corpora.builtin --task TASK --output DIR``.

They lie in ``builtin_texts``, an archive for each and a file that says what it holds. Grammars made them
(``benchmarks/builtin_corpus.py``): they show that everything works, and not which model is better.
"""

from __future__ import annotations

import argparse
import os
import tarfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from fairseq_plugins.errors import InputError, report_input_errors
from fairseq_plugins.files import atomic_directory
from fairseq_plugins.versions import add_version_argument

SUFFIXES: Mapping[str, tuple[str, str]] = {"translation": ("de", "en"), "summarization": ("article", "title")}
"""Of the files of pairs, ``train.de`` and ``train.en`` and so on: what is read, and what it becomes."""
TEXT = "language_model"
"""The task that has one text in each file: ``train.txt``, ``valid.txt`` and ``test.txt``."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "classification": ("text", "label"),
    "entailment": ("premise", "hypothesis", "label"),
    "ranking": ("question", "candidate", "label", "group"),
}
"""Of the tables of labelled texts, ``train.tsv`` and so on, whose first lines name them."""
TASKS = (*SUFFIXES, TEXT, *COLUMNS)

HELD_OUT = "translation_held_out.tsv"
PLAIN = "plain"
"""The kind of a held-out pair of at most six words."""

_TEXTS = resources.files(__package__) / "builtin_texts"


def read(task: str) -> dict[str, str]:
    """The text of each file of a corpus, by the file's name."""
    texts = {}
    with (_TEXTS / f"{task}.tar.xz").open("rb") as stream, tarfile.open(fileobj=stream) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None, "it is a file"
            texts[member.name] = content.read().decode("utf-8")
    return texts


class HeldOutPair(NamedTuple):
    """A German sentence that was written by hand, as its English is."""

    kind: str
    """:data:`PLAIN`, or ``other``."""
    source: str
    reference: str


def held_out() -> list[HeldOutPair]:
    """Pairs beside the corpus for translation, of its words, which no file of it holds: plain ones first."""
    _, *rows = (_TEXTS / HELD_OUT).read_text(encoding="utf-8").splitlines()
    return [HeldOutPair(*row.split("\t")) for row in rows]


def write(task: str, output: Path) -> None:
    """Writes the files of a corpus, and says what they hold.

    Args:
        task: one of :data:`TASKS`
        output: a folder; where it holds the same corpus already, that is replaced

    Raises:
        InputError: ``output`` is a file, or holds something else, which would be lost.
    """
    texts = read(task)
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file: name another folder for --output")
    if output.is_dir() and (others := sorted({*os.listdir(output)} - {*texts})):
        raise InputError(f"{output} holds {others[0]}, which is not of this corpus: name another folder for --output")
    with atomic_directory(output) as folder:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"{output}: {(_TEXTS / f'{task}.txt').read_text(encoding='utf-8')}", end="")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_plugins.corpora.builtin",
        description="Writes a built-in corpus as plain text, one sentence a line.",
        epilog="example: python -m fairseq_plugins.corpora.builtin --task translation --output work/builtin/raw",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--task", choices=TASKS, default="translation", help="what to write")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; the same corpus is replaced")
    add_version_argument(parser)
    arguments = parser.parse_args()
    report_input_errors(lambda: write(arguments.task, arguments.output))


if __name__ == "__main__":
    main()
