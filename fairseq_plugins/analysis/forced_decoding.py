"""A trained model reads given sentences, and says what happened; pairs of them (forced decoding), and says where each
target token looked.

Sentences go in batches padded on the right, whatever the training did, so that position i of the attention is token i
of the sentence for every model; what is handed out holds real tokens alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from fairseq.data import Dictionary, LanguagePairDataset
from torch import Tensor

from ..decoding.translation import Sentence, TranslationModel
from ..errors import InputError
from ..files import read_lines
from ..models.shown_attention import LayerDetail, ShownAttention, attention_of, layer_details_of
from .result import Analysis, Panel

Item = TypeVar("Item")

BATCH_SIZE = 32


class Reading(NamedTuple):
    """Where each of T target tokens looks among S source tokens, the ends of sentence included.

    Attributes:
        flows: weights (T, S): ``cc``, ``ca``, … where DPN-S2S has them (means over layers and heads), ``attention`` of
            any other model
        gates: of DPN-S2S, where it has them: ``cnn.san``, the share of the SAN encoder in each layer of the CNN path
            (T, layers), …, and ``output.san``, that of the SAN path in the output (T, 1)
    """

    flows: dict[str, Tensor]
    gates: dict[str, Tensor]


def forced_decoding(
    trained: TranslationModel, pairs: Sequence[tuple[Sentence, Sentence]]
) -> Iterator[tuple[int, Reading]]:
    """Makes a model read sentence pairs.

    Args:
        trained: the model
        pairs: source and target sentences

    Yields:
        the index of a pair, in no particular order, and what the model did

    Raises:
        InputError: a sentence is longer than the model takes, or the model has no attention.
    """
    encoded = [
        (_encode(trained.source_dictionary, source), _encode(trained.target_dictionary, target))
        for source, target in pairs
    ]
    for number, lengths in enumerate(((len(source), len(target)) for source, target in encoded), 1):
        for side, length, limit in zip(("source", "target"), lengths, trained.model.max_positions(), strict=True):
            if length > limit:
                raise InputError(
                    f"sentence {number}: its {side} has {length:,} tokens, but the model takes {limit:,}; leave it out"
                )
    dataset = LanguagePairDataset(
        [source for source, _ in encoded],
        [len(source) for source, _ in encoded],
        trained.source_dictionary,
        [target for _, target in encoded],
        [len(target) for _, target in encoded],
        trained.target_dictionary,
        left_pad_source=False,
        left_pad_target=False,
    )
    order = sorted(range(len(encoded)), key=lambda i: (len(encoded[i][0]), len(encoded[i][1])))
    for start in range(0, len(order), BATCH_SIZE):
        batch = dataset.collater([dataset[i] for i in order[start : start + BATCH_SIZE]])
        with torch.no_grad():
            flows, gates = _read(trained, batch["net_input"])
        for row, index in enumerate(batch["id"].tolist()):
            source, target = encoded[index]
            yield (
                index,
                Reading(
                    {name: weights[row, : len(target), : len(source)] for name, weights in flows.items()},
                    {name: values[row, : len(target)] for name, values in gates.items()},
                ),
            )


def layer_details(trained: TranslationModel, sentence: Sentence, detail: str) -> list[LayerDetail]:
    """One detail of the layers of the encoder that reads a sentence, its end included: ``values`` are (T, ...).

    Empty where the encoder has no layers that say it; see :func:`.shown_attention.layer_details_of`.
    """
    tokens = _encode(trained.source_dictionary, sentence).unsqueeze(0)
    with torch.no_grad():
        details = layer_details_of(trained.model, tokens, detail)
    return [layer._replace(values=layer.values[0]) for layer in details]


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
    language = trained.preparation.source_lang
    return [trained.source(line) for line in _lines(trained, arguments, arguments.source, language)]


def read_pairs(trained: TranslationModel, arguments: argparse.Namespace) -> list[tuple[Sentence, Sentence]]:
    """The sentence pairs that the arguments of :func:`add_model_arguments` name.

    Raises:
        InputError: as :func:`read_sources`, or the sides have different numbers of lines.
    """
    if arguments.source is not None and arguments.target is None:
        raise InputError("--source needs --target: the translations that the model is made to read, one a line")
    sources = read_sources(trained, arguments)
    lines = _lines(trained, arguments, arguments.target, trained.preparation.target_lang)
    if len(lines) != len(sources):
        where = arguments.target or f"the set {arguments.subset}"
        raise InputError(f"{where}: {len(lines):,} target sentences, but {len(sources):,} source sentences")
    return list(zip(sources, map(trained.target, lines), strict=True))


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
    preparation = trained.preparation
    if text is None:
        subset = preparation.split_of(arguments.subset)
        # Without BPE the tokens are what the model reads.
        path = trained.data.folder / ("tokens" if preparation.bpe == "none" else "bpe") / f"{subset}.{language}"
        lines = list(map(preparation.to_unknown, read_lines(path)))
    else:
        path = text
        encode = preparation.encode_source if language == preparation.source_lang else preparation.encode_target
        lines = list(map(encode, read_lines(path)))
    if not lines:
        raise InputError(f"{path}: the file is empty; give one sentence a line")
    return lines


def _encode(dictionary: Dictionary, sentence: Sentence) -> Tensor:
    return torch.tensor([*map(dictionary.index, sentence.pieces), dictionary.eos()])


def _read(trained: TranslationModel, net_input: dict[str, Tensor]) -> ShownAttention:
    """A batch, padding included."""
    shown = attention_of(trained.model, net_input)
    if shown is None:
        raise InputError(f"{trained.path}: '{trained.architecture}' says nothing about its attention")
    return shown
