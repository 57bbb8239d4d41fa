"""A tiny running text, and trainings on it, for the tests of language models."""

from __future__ import annotations

import random
from pathlib import Path

WORDS = [consonant + vowel for consonant in "bdfgk" for vowel in "aio"]
SIZES = {"train": 120, "valid": 12, "test": 15}


def lines_of(number: int, seed: int) -> list[str]:
    """Lines in which each word but the first depends on the one before it."""
    generator = random.Random(seed)
    lines = []
    for _ in range(number):
        place = generator.randrange(len(WORDS))
        line = []
        for _ in range(generator.randint(2, 8)):
            line.append(WORDS[place])
            place = (2 * place + generator.randrange(3)) % len(WORDS)
        lines.append(" ".join(line))
    return lines


def training(data: Path, folder: Path, *more: object, arch: str = "recurrent_lm") -> list[str]:
    """Options of fairseq-train for a tiny language model; further ones win."""
    options = "--decoder-embed-dim 12 --decoder-hidden-size 16 --decoder-layers 2 --share-decoder-input-output-embed"
    options += " --tokens-per-sample 10 --batch-size 4 --optimizer sgd --lr 1.0 --clip-norm 0.25 --seed 1"
    options += " --cpu --distributed-world-size 1 --log-format simple --no-epoch-checkpoints"
    own = [str(data / "bin"), "--task", "streaming_language_modeling", "--arch", arch, "--save-dir", str(folder)]
    return [*own, *options.split(), *map(str, more)]
