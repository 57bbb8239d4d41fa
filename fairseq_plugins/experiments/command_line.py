"""What commands share: the types of their options, and their input."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from .. import register
from ..checkpoints import load_extensions_of
from ..errors import InputError, report_input_errors
from ..files import lines_of, refuse_colon
from ..startup import prepare_command


def gpu_count(text: str) -> int:
    """The type of ``--gpus``."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} GPUs cannot be used; 0 is the CPU")
    return number


gpu_count.__name__ = "int"  # as argparse calls it where a value is none


def process_count(text: str) -> int:
    """The type of ``--processes``."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} processes do nothing; at least 1 has to")
    return number


process_count.__name__ = "int"


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


def add_cache_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a language model's continuous cache."""
    cache = parser.add_argument_group("continuous cache")
    cache.add_argument(
        "--cache",
        action="store_true",
        help="with what a search on the validation set chooses, but for what is given below",
    )
    cache.add_argument("--cache-window", type=int, metavar="N", help="words that it holds; its own choice: 500")
    cache.add_argument("--cache-theta", type=float, metavar="X", help="how much likeness counts: 1.0")
    cache.add_argument("--cache-weight", type=float, metavar="X", help="lambda, its share: 0.1")


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


def begin_decoding(checkpoints: Sequence[str | Path]) -> None:
    """What a command does before it imports what decodes.

    Extensions come before the models make options of the layers that there are. Denormal numbers are zero
    (:func:`..patches.speed.flush_denormals`) before PyTorch starts the threads that take it over.

    Args:
        checkpoints: whose extensions are imported

    Raises:
        InputError: an extension is missing, or cannot be imported.
    """
    load_extensions_of(checkpoints)
    register()
    import torch

    torch.set_flush_denormal(True)
    # What was imported stays: no later collection, the process's last one included, looks through it again.
    gc.freeze()


def run_module(main: Callable[[list[str]], None]) -> None:
    """Runs the entry point of a module that only our own commands start, with what the command line says."""
    prepare_command()
    report_input_errors(lambda: main(sys.argv[1:]))
