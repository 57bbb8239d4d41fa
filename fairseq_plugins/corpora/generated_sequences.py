"""Sequences for tests of long memory: the copy memory problem, and the pixels of MNIST's digits one by one.

    fairseq-plugins prepare copy_memory --length 500 --output work/copy_memory_500/data
    fairseq-plugins prepare pixels --input mnist --output work/pixel_mnist/data

DilatedRNN (Chang et al. 2017), Section 4.1 and 4.2. ``fairseq-plugins prepare copy_memory`` and
``fairseq-plugins prepare pixels`` run this. The output folder holds

    raw/{valid,test}.label    the ten symbols to copy, or the digit, of each sequence of a set
    bin/{train,valid,test}.npz    the digits' pixels and labels; of copy memory the symbols of valid and test
    preparation.json    what the problem is
"""

from __future__ import annotations

import dataclasses
import gzip
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_plugins.command_parser import CommandParser
from fairseq_plugins.corpora.lines import text_writer
from fairseq_plugins.corpora.pipeline import Run, add_run_arguments
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.errors import InputError

PROBLEMS = ("copy_memory", "pixels")
COPIED = 10
"""Symbols that are to be copied."""
SYMBOLS = 8
"""Those that may be."""
PIXELS, SMALL_PIXELS = 28 * 28, 8 * 8
PERMUTATION_SEED = 92916
"""The authors' own."""
HELD_OUT = 5_000
"""The first digits of MNIST's training set validate, as in TensorFlow's own data set."""
NAMES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


@dataclasses.dataclass
class GeneratedSequencesPreparation(Preparation):
    """What sequences are made of."""

    kind = "generated_sequences"
    title = "generated sequences"

    problem: str
    length: int
    """T: of copy memory the steps to remember for; of pixels all steps, more than 784 for noise after the digit."""
    is_small: bool = False
    """The pixels are not MNIST's but those of the 1,797 digits of 8 by 8 that scikit-learn has."""
    is_permuted: bool = False
    """Pixels are in an order that :data:`PERMUTATION_SEED` decides."""
    sequences: int = 1_000
    """Of copy memory's validation and test sets."""
    seed: int = 1
    """Of these."""
    metric: str = dataclasses.field(default="accuracy", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.problem not in PROBLEMS:
            raise InputError(f"unknown problem {self.problem!r}: choose one of {', '.join(PROBLEMS)}")
        shortest = 1 if self.problem == "copy_memory" else SMALL_PIXELS if self.is_small else PIXELS
        if self.length < shortest:
            raise InputError(f"length is {self.length}: it must be at least {shortest}")
        if self.sequences < 1:
            raise InputError(f"sequences is {self.sequences}: it must be at least 1")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}: it must be at least 0")

    @property
    def labels(self) -> list[str]:
        """The classes of whole sequences."""
        return list(map(str, range(10))) if self.problem == "pixels" else []

    def task_options(self) -> dict[str, Any]:
        return {"problem": self.problem, "sequence_length": self.length, "permute": self.is_permuted}

    def fairseq_arguments(self, folder: str | os.PathLike[str]) -> list[str]:
        options = ["--task", "long_memory", "--problem", self.problem, "--sequence-length", str(self.length)]
        return [*super().fairseq_arguments(folder), *options, *(["--permute"] if self.is_permuted else [])]


class GeneratedSequencesRun(Run[GeneratedSequencesPreparation]):
    """One run of a preparation of sequences."""

    folders = ("raw", "bin")

    def write(self, folder: Path) -> dict[str, Any]:
        write = self._write_copied if self.preparation.problem == "copy_memory" else self._write_pixels
        counts = write(folder)
        return {"splits": {name: {**self.facts.get(name, {}), "kept": count} for name, count in counts.items()}}

    def _write_copied(self, folder: Path) -> dict[str, int]:
        steps = self.preparation
        sets = {}
        for number, name in enumerate(("valid", "test")):
            generator = np.random.default_rng((steps.seed, number))
            sets[name] = {"symbols": generator.integers(0, SYMBOLS, (steps.sequences, COPIED))}
        labels = {name: [" ".join(map(str, row)) for row in arrays["symbols"]] for name, arrays in sets.items()}
        return {"train": 0, **_write(folder, sets, labels)}

    def _write_pixels(self, folder: Path) -> dict[str, int]:
        if self.preparation.is_small:
            parts = _small_digits()
        else:
            train, test = (_digits(*self.inputs[name]) for name in ("train", "test"))
            if len(train[0]) <= HELD_OUT:
                raise InputError(f"{self.inputs['train'][0]}: {len(train[0]):,} digits; {HELD_OUT:,} validate")
            parts = {
                "train": [array[HELD_OUT:] for array in train],
                "valid": [array[:HELD_OUT] for array in train],
                "test": list(test),
            }
        sets = {name: {"pixels": pixels, "labels": labels} for name, (pixels, labels) in parts.items()}
        return _write(folder, sets, {name: list(map(str, labels)) for name, (_, labels) in parts.items()})


def _write(folder: Path, sets: Mapping[str, Mapping[str, Any]], labels: Mapping[str, list[str]]) -> dict[str, int]:
    """Writes ``bin/`` and ``raw/``; returns how many sequences each set has."""
    for part in "bin", "raw":
        (folder / part).mkdir()
    for name, arrays in sets.items():
        np.savez_compressed(folder / "bin" / f"{name}.npz", **arrays)
    for name, lines in labels.items():
        with text_writer(folder / "raw" / f"{name}.label") as stream:
            stream.writelines(line + "\n" for line in lines)
    return {name: len(lines) for name, lines in labels.items()}


def _digits(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (N, 784) and digits (N,), bytes.

    Raises:
        InputError: a file is damaged, or no idx file of digits.
    """
    pixels, digits = _read_idx(images, 3), _read_idx(labels, 1)
    if pixels.shape[1:] != (28, 28) or len(pixels) != len(digits) or digits.max(initial=0) > 9:
        raise InputError(f"{images}: {pixels.shape} pixels for {len(digits):,} labels; 28 by 28 for each were expected")
    return pixels.reshape(-1, PIXELS), digits


def _small_digits() -> dict[str, list[np.ndarray]]:
    """The pixels (N, 64) and digits of scikit-learn's set: the last 400 test, the 200 before validate."""
    # Not at the head of the file: nothing else here needs it.
    from sklearn.datasets import load_digits

    digits = load_digits()
    arrays = (digits.data * 255 / 16).astype(np.uint8), digits.target.astype(np.uint8)
    bounds = {"train": slice(None, -600), "valid": slice(-600, -400), "test": slice(-400, None)}
    return {name: [array[bound] for array in arrays] for name, bound in bounds.items()}


def _read_idx(path: Path, dimensions: int) -> np.ndarray:
    """The bytes of an idx file (plain or ``.gz``): two zeros, 8 for bytes, the number of dimensions and their sizes."""
    head = 4 + 4 * dimensions
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as stream:
            start = stream.read(head)
            if start[:4] != bytes([0, 0, 8, dimensions]):
                raise InputError(
                    f"{path}: not an idx file of bytes in {dimensions} dimensions; give MNIST's four files"
                )
            sizes = [int.from_bytes(start[place : place + 4], "big") for place in range(4, head, 4)]
            content = stream.read(math.prod(sizes) + 1)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{path}: not a whole gzip file ({error}); fetch it again") from None
    if len(start) < head or len(content) != math.prod(sizes):
        raise InputError(f"{path}: the file is not whole; fetch it again")
    return np.frombuffer(content, dtype=np.uint8).reshape(sizes)


def find(folder: Path) -> dict[str, Sequence[Path]]:
    """MNIST's files in a folder, plain or ``.gz``.

    Raises:
        InputError: one is missing.
    """

    def one(name: str) -> Path:
        for path in folder / name, folder / f"{name}.gz":
            if path.is_file():
                return path
        raise InputError(f"{folder / name}: no such file, nor {name}.gz; give the folder of MNIST's four files")

    return {split: [one(name) for name in names] for split, names in NAMES.items()}


def parsers() -> dict[str, CommandParser]:
    """The command lines of both problems."""
    copy = CommandParser(
        "prepare copy_memory",
        "Prepares the copy memory problem: ten symbols to copy after T steps. Training sequences are drawn as they "
        "are needed; validation and test sets are written.",
        ("--length 500 --output work/copy_memory_500/data",),
    )
    copy.add_argument("--length", type=int, default=500, metavar="T", help="steps to remember for; default: 500")
    copy.add_argument("--sequences", type=int, default=1_000, help="of validation and test sets; default: 1000")
    copy.add_argument("--seed", type=int, default=1, help="of these; default: 1")
    pixels = CommandParser(
        "prepare pixels",
        "Prepares MNIST's digits pixel by pixel: plain, permuted, or with noise after them.",
        (
            "--input mnist --output work/pixel_mnist/data",
            "--input mnist --permute --output work/permuted_mnist/data",
            "--input mnist --length 1000 --output work/noisy_mnist_1000/data",
        ),
    )
    digits = pixels.add_mutually_exclusive_group(required=True)
    digits.add_argument("--input", type=Path, metavar="DIR", help="with MNIST's four idx files")
    digits.add_argument("--small", action="store_true", help="scikit-learn's 1,797 digits of 8 by 8 pixels")
    pixels.add_argument("--permute", action="store_true", help="pixels in a fixed order drawn at random")
    pixels.add_argument(
        "--length", type=int, metavar="T", help="fill up with noise to T steps; default: the pixels alone"
    )
    for command in copy, pixels:
        add_run_arguments(command)
    return {"copy_memory": copy, "pixels": pixels}


def main(arguments: Sequence[str]) -> None:
    """Prepares one of them, which comes first."""
    problem, *remaining = arguments
    options = parsers()[problem].parse_args(remaining)
    if problem == "pixels":
        length = options.length
        if length is None:
            length = SMALL_PIXELS if options.small else PIXELS
        preparation = GeneratedSequencesPreparation(
            problem="pixels",
            length=length,
            is_small=options.small,
            is_permuted=options.permute,
        )
        inputs: Mapping[str, Sequence[Path]] = {} if options.small else find(options.input)
    else:
        preparation = GeneratedSequencesPreparation(
            problem="copy_memory",
            length=options.length,
            sequences=options.sequences,
            seed=options.seed,
            metric="copy_memory",
        )
        inputs = {}
    prepared = GeneratedSequencesRun(preparation, inputs, options.output, options.workers).prepare()
    counts = ", ".join(f"{facts['kept']:,} {name}" for name, facts in prepared.splits.items() if facts["kept"])
    print(f"{options.output}: {preparation.problem}, length {preparation.length}: {counts}")
