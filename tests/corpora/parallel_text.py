"""Small parallel texts, and how a test looks at what becomes of them."""

from __future__ import annotations

import random
from pathlib import Path

from fairseq_plugins.corpora.pairs import PairsPreparation

STEPS = PairsPreparation("de", "en", lowercase=True, tokenizer="moses", bpe_size=150)


def sentences(number: int, seed: int) -> list[tuple[str, str]]:
    """Different raw German-like and English-like sentences, with what tokenisation and cleaning meet."""
    generator = random.Random(seed)
    pairs = []
    for _ in range(number):
        words = ["".join(generator.choices("aeiou", k=1) + generator.choices("bdfglmnrst", k=2)) for _ in range(40)]
        source = " ".join(generator.choices(words, k=generator.randint(3, 9))).capitalize()
        target = " ".join(generator.choices(words, k=generator.randint(3, 9))).capitalize()
        pairs.append((f'{source}, "Ä{generator.choice(words)}" & so.', f"{target} isn't it (50%)?"))
    return pairs


def write(prefix: Path, pairs: list[tuple[str, str]]) -> tuple[Path, Path]:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    paths = (Path(f"{prefix}.de"), Path(f"{prefix}.en"))
    for side, path in enumerate(paths):
        path.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8", newline="\n")
    return paths


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode().split("\n")[:-1]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
