"""What the scripts' command lines share: their help, how they end, and the commands that they are made of."""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from ..corpora.builtin import SUFFIXES, TEXT
from ..errors import InputError, report_input_errors
from ..files import lines_of, refuse_colon
from ..versions import add_version_argument
from . import builtin_corpora
from .configuration import CHECKOUT


class ScriptParser(argparse.ArgumentParser):
    """The options of ``scripts/<name>.sh``, whose help is the comment at the head of that file."""

    def __init__(self, name: str) -> None:
        super().__init__(prog=f"scripts/{name}.sh", allow_abbrev=False)
        self._script = CHECKOUT / "scripts" / f"{name}.sh"
        add_version_argument(self)

    def format_help(self) -> str:
        if not self._script.is_file():
            return super().format_help()
        lines = self._script.read_text(encoding="utf-8").splitlines()[1:]
        comment = itertools.takewhile(lambda line: line.startswith("#"), lines)
        return "".join(line.removeprefix("#").removeprefix(" ") + "\n" for line in comment)

    def parse_after(self, what: str, arguments: Sequence[str]) -> tuple[str, argparse.Namespace, list[str]]:
        """The first argument, our options among the others, and what is left of these for fairseq's command.

        Args:
            what: what the first argument names
            arguments: of the command line
        """
        if not arguments:
            self.print_help(sys.stderr)
            sys.exit(2)
        if arguments[0] in ("--help", "-h", "--version"):
            self.parse_args(arguments[:1])
        if arguments[0].startswith("-"):
            self.error(f"{what} comes first, before {arguments[0]}")
        options, extra = self.parse_known_args(arguments[1:])
        return arguments[0], options, extra


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


def main_of(main: Callable[[list[str]], None]) -> None:
    """Runs an entry point. Bad input is one sentence and status 1; Ctrl-C and SIGTERM stop it, with status 130."""

    # fairseq's parsers report at INFO that a user dir is imported and that optional packages are missing.
    logging.disable(logging.INFO)
    report_input_errors(lambda: main(sys.argv[1:]))


def script(name: str) -> str:
    """The path of one of the checkout's scripts."""
    return str(CHECKOUT / "scripts" / f"{name}.sh")


def builtin_corpus(task: str, text: object, data: object, preparation: Sequence[object]) -> Sequence[list[object]]:
    """The commands that write a built-in corpus to the folder ``text``, and prepare it in ``data``."""
    if task in builtin_corpora.COMMANDS:
        return builtin_corpora.COMMANDS[task](text, data, preparation)
    generate = [sys.executable, "-m", "fairseq_plugins.corpora.builtin", "--task", task, "--output", text, "--seed", 1]
    ending = ".txt" if task == TEXT else ""
    files = [part for split in ("train", "valid", "test") for part in (f"--{split}", f"{text}/{split}{ending}")]
    if task == TEXT:
        return generate, [script("prepare_text"), *files, *preparation, "--output", data]
    source, target = SUFFIXES[task]
    prepare = [script("prepare_parallel"), "--src-lang", source, "--tgt-lang", target, *files, *preparation]
    return generate, [*prepare, "--output", data]
