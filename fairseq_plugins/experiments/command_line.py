"""What commands share: the types of their options, their input, and the commands that they are made of."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from ..corpora.builtin import SUFFIXES, TEXT
from ..errors import InputError, report_input_errors
from ..files import lines_of, refuse_colon
from ..startup import prepare_command
from .builtin_corpora import COMMANDS
from .processes import own_command


def gpu_count(text: str) -> int:
    """The type of ``--gpus``."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} GPUs cannot be used; 0 is the CPU")
    return number


gpu_count.__name__ = "int"  # as argparse calls it where a value is none


def work_folder(path: str | os.PathLike[str]) -> Path:
    """The absolute path of ``--work``.

    Raises:
        InputError: it is a file, or there is a colon in it.
    """
    work = Path(os.path.abspath(path))
    refuse_colon(work, "--work")
    if work.exists() and not work.is_dir():
        raise InputError(f"{work} is a file: name a folder for --work")
    return work


def standard_input(what: str) -> list[str]:
    """The lines of the standard input, which are ``what`` (``sentences``); on a terminal it is said how they end.

    Raises:
        InputError: it is closed, or no text.
    """
    if sys.stdin is None:
        raise InputError(f"the standard input is closed: give {what} there, one a line")
    if sys.stdin.isatty():
        print(f"Type {what}, one a line, and end with Ctrl-D.", file=sys.stderr)
    # Not /dev/stdin, which opens a file anew, at its beginning, and cannot open a socket.
    with open(0, "rb", closefd=False) as stream:
        return list(lines_of(stream, "the standard input"))


def started(what: object, stream: TextIO | None = None) -> None:
    """Says what the seconds are for until PyTorch and fairseq are imported; on a terminal :func:`register` says it."""
    if not sys.stderr.isatty():
        print(f"{what}: starting PyTorch and fairseq", file=stream, flush=True)


def run_module(main: Callable[[list[str]], None]) -> None:
    """Runs the entry point of a module that only our own commands start, with what the command line says."""
    prepare_command()
    report_input_errors(lambda: main(sys.argv[1:]))


def builtin_corpus(task: str, text: object, data: object, preparation: Sequence[object]) -> Sequence[list[object]]:
    """The commands that write a built-in corpus to the folder ``text``, and prepare it in ``data``."""
    if task in COMMANDS:
        return COMMANDS[task](text, data, preparation)
    generate = [sys.executable, "-m", "fairseq_plugins.corpora.builtin", "--task", task, "--output", text, "--seed", 1]
    ending = ".txt" if task == TEXT else ""
    files = [part for split in ("train", "valid", "test") for part in (f"--{split}", f"{text}/{split}{ending}")]
    if task == TEXT:
        return generate, [*own_command("prepare", "text"), *files, *preparation, "--output", data]
    source, target = SUFFIXES[task]
    prepare = [*own_command("prepare", "parallel"), "--src-lang", source, "--tgt-lang", target, *files, *preparation]
    return generate, [*prepare, "--output", data]
