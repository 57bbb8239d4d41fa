"""What the quick start's models make of the held-out sentences, which were written by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..corpora import builtin
from ..files import checksum_of_lines
from .configuration import Configuration
from .run import Run


def translate_held_out(run: Run, configuration: Configuration) -> list[str]:
    """Translates the held-out sentences with a run's best checkpoint, and keeps the translations in ``results.json``.

    Args:
        run: of a training on the built-in corpus for translation
        configuration: that it was trained by

    Returns:
        A translation of each pair of :func:`..corpora.builtin.held_out`.
    """
    from ..decoding.translation import load  # imports PyTorch and fairseq

    translations = load(run.folder).translate([pair.source for pair in builtin.held_out()])
    run.update(held_out={**checksums(configuration), "translations": translations})
    return translations


def checksums(configuration: Configuration) -> dict[str, str]:
    """SHA-256 of what translations of the held-out sentences depend on: ``corpus`` and ``configuration``."""
    texts = builtin.read("translation")
    texts[builtin.HELD_OUT] = "".join(f"{pair.source}\t{pair.reference}\n" for pair in builtin.held_out())
    sections = {"train": configuration.train, "generate": configuration.generate}
    options = {name: {key: value.text for key, value in section.items()} for name, section in sections.items()}
    return {"corpus": _checksum(texts), "configuration": _checksum(options)}


def _checksum(content: Any) -> str:
    return checksum_of_lines([json.dumps(content, sort_keys=True)])


def counts(translations: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Kind of the held-out sentences → how many of them are translated as the reference, and how many there are."""
    pairs = builtin.held_out()
    kinds = dict.fromkeys(pair.kind for pair in pairs)
    rights = [(pair.kind, pair.reference == text) for pair, text in zip(pairs, translations, strict=True)]
    return {kind: (rights.count((kind, True)), sum(of == kind for of, _ in rights)) for kind in kinds}


def count_sentence(translations: Sequence[str]) -> str:
    """``57 of 60 plain sentences as the reference, 15 of 20 longer ones``."""
    (right, plain), (longer_right, longer) = counts(translations).values()
    return f"{right} of {plain} plain sentences as the reference, {longer_right} of {longer} longer ones"
