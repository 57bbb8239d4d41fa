"""The sentences that an analysis is given, and what it says of each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..decoding.forced_decoding import encoded_lines, lines_of_set, paired
from ..decoding.translation import Sentence, TranslationModel
from ..errors import InputError
from .result import Analysis, Panel

Item = TypeVar("Item")


def analysis_of_sentences(
    trained: TranslationModel,
    numbers: Sequence[int],
    results: Sequence[Any],
    lines: Callable[[Any], Sequence[str]] = lambda _: (),
) -> Analysis:
    """What was found in some sentences, a figure for each.

    Args:
        trained: the model
        numbers: of the sentences, from 1
        results: what was found in each, a dataclass
        lines: printed of each
    """
    about = {"checkpoint": str(trained.path), "architecture": trained.architecture}
    sentences = [{"number": number, **asdict(result)} for number, result in zip(numbers, results, strict=True)]
    panels = [
        Panel(result, f"_{number}", tuple(lines(result))) for number, result in zip(numbers, results, strict=True)
    ]
    return Analysis({**about, "sentences": sentences}, panels, "")


def joined(weights: Tensor, source: Sentence, target: Sentence) -> Tensor:
    """Weights (T, S) between BPE tokens as weights between words, the end of sentence being the last of either side.

    Source tokens of a word are added up, target tokens averaged, so that every row still sums to 1.
    """
    columns = torch.stack([weights[:, word.start : word.stop].sum(1) for word in source.words_and_end], dim=1)
    return torch.stack([columns[word.start : word.stop].mean(0) for word in target.words_and_end])


def add_model_arguments(parser: argparse.ArgumentParser, target: bool = True) -> None:
    """The checkpoint, and where its text comes from."""
    parser.add_argument("checkpoint", type=Path, help="a checkpoint that fairseq-train wrote")
    parser.add_argument("--data", type=Path, help="the prepared data, if it is not where the training found it")
    parser.add_argument("--subset", default="test", help="a set of the prepared data (test by default)")
    parser.add_argument("--source", type=Path, help="raw text instead of a set: source sentences, one a line")
    if target:
        parser.add_argument("--target", type=Path, help="their translations; with a set, instead of its references")


def add_sentences_argument(parser: argparse.ArgumentParser) -> None:
    """Which of the sentences are looked at."""
    text = "which of the sentences, from 1 (the first by default)"
    parser.add_argument("--sentences", type=int, nargs="+", default=[1], metavar="N", help=text)


def read_sources(trained: TranslationModel, arguments: argparse.Namespace) -> list[Sentence]:
    """The source sentences that the arguments of :func:`add_model_arguments` name.

    Raises:
        InputError: there is no such set or file, or it is empty.
    """
    return list(map(trained.source, _lines(trained, arguments, arguments.source, trained.preparation.source_lang)))


def read_pairs(trained: TranslationModel, arguments: argparse.Namespace) -> list[tuple[Sentence, Sentence]]:
    """The sentence pairs that the arguments of :func:`add_model_arguments` name.

    Raises:
        InputError: as :func:`read_sources`, or the sides have different numbers of lines.
    """
    if arguments.source is not None and arguments.target is None:
        raise InputError("--source needs --target: the translations that the model is made to read, one a line")
    preparation = trained.preparation
    sources = _lines(trained, arguments, arguments.source, preparation.source_lang)
    targets = _lines(trained, arguments, arguments.target, preparation.target_lang)
    return paired(trained, sources, targets, str(arguments.target or f"the set {arguments.subset}"))


def chosen(items: Sequence[Item], numbers: Sequence[int]) -> list[Item]:
    """The items of the given numbers, which count from 1.

    Raises:
        InputError: there is no item of that number.
    """
    for number in numbers:
        if not 1 <= number <= len(items):
            raise InputError(f"there is no sentence {number}; there are {len(items):,}, which count from 1")
    return [items[number - 1] for number in numbers]


def _lines(trained: TranslationModel, arguments: argparse.Namespace, text: Path | None, language: str) -> list[str]:
    """The BPE tokens of each sentence."""
    if text is None:
        return lines_of_set(trained, arguments.subset, language)
    preparation = trained.preparation
    is_source = language == preparation.source_lang
    return encoded_lines(text, preparation.encode_source if is_source else preparation.encode_target)
