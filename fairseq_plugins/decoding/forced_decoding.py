"""A trained model reads given sentences, and says what happened; pairs of them (forced decoding), and says where each
target token looked.

Sentences go in batches padded on the right, whatever the training did, so that position i of the attention is token i
of the sentence for every model; what is handed out holds real tokens alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from fairseq.data import Dictionary, LanguagePairDataset
from torch import Tensor

from ..errors import InputError
from ..files import read_lines
from ..models.shown_attention import LayerDetail, ShownAttention, attention_of, layer_details_of
from .translation import Sentence, TranslationModel

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


def encoded_lines(path: Path, encode: Callable[[str], str]) -> list[str]:
    """The BPE tokens of each sentence of a file.

    Raises:
        InputError: there is no such file, or it is empty.
    """
    lines = list(map(encode, read_lines(path)))
    if not lines:
        raise InputError(f"{path}: the file is empty; give one sentence a line")
    return lines


def lines_of_set(trained: TranslationModel, subset: str, language: str) -> list[str]:
    """The same of one side of a prepared set."""
    preparation = trained.preparation
    # Without BPE the tokens are what the model reads.
    folder = trained.data.folder / ("tokens" if preparation.bpe == "none" else "bpe")
    return encoded_lines(folder / f"{preparation.split_of(subset)}.{language}", preparation.to_unknown)


def paired(
    trained: TranslationModel, sources: Sequence[str], targets: Sequence[str], where: str
) -> list[tuple[Sentence, Sentence]]:
    """The pairs of two sides, whose sentences are given by their BPE tokens.

    Raises:
        InputError: the sides have different numbers of sentences; ``where`` names them.
    """
    if len(targets) != len(sources):
        raise InputError(f"{where}: {len(targets):,} target sentences, but {len(sources):,} source sentences")
    return list(zip(map(trained.source, sources), map(trained.target, targets), strict=True))


def _encode(dictionary: Dictionary, sentence: Sentence) -> Tensor:
    return torch.tensor([*map(dictionary.index, sentence.pieces), dictionary.eos()])


def _read(trained: TranslationModel, net_input: dict[str, Tensor]) -> ShownAttention:
    """A batch, padding included."""
    shown = attention_of(trained.model, net_input)
    if shown is None:
        raise InputError(f"{trained.path}: '{trained.architecture}' says nothing about its attention")
    return shown
