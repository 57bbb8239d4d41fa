"""Which words of a text a model of labelled texts takes its features from: by max pooling or by attentive pooling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.tasks import FairseqTask
from torch import Tensor

from ..decoding.classification import ClassificationModel
from ..decoding.prepared_data import PreparedData
from ..errors import InputError
from ..models.sequence_classifier import SequenceClassifier
from ..models.sequence_pair_classifier import SequencePairClassifier
from ..models.sequence_ranker import SequenceRanker
from ..modules import pool
from ..samples import spread


@dataclass(frozen=True)
class PickedText:
    """One text.

    Attributes:
        words: of the text, as the model reads them
        shares: of the features whose maximum is at each word, or the word's weight; they add up to 1
    """

    words: list[str]
    shares: list[float]


@dataclass(frozen=True)
class PickedWords:
    """One example.

    Attributes:
        texts: its text, or both of a pair; of rankings a question and the candidate that is put first
        label: its class; 1 of a right candidate
        predicted: what the model takes it for; of rankings the score
    """

    texts: list[PickedText]
    label: str
    predicted: str


def picked_words(checkpoint: Path, data: PreparedData, count: int, subset: str = "test") -> list[PickedWords]:
    """Runs a model over some examples, spread over a set.

    Args:
        checkpoint: of a model of labelled texts with max or attentive pooling
        data: what it was trained on
        count: how many examples, or questions
        subset: of which set

    Raises:
        InputError: the model is another, picks no words, or was trained with other dictionaries.
    """
    trained = ClassificationModel.load([checkpoint], data.folder)
    model, task = trained.model, trained.task
    is_classifier = isinstance(model, (SequenceClassifier, SequencePairClassifier)) and "max" in model.poolings
    if not is_classifier and not isinstance(model, SequenceRanker):
        raise InputError(f"{checkpoint}: no model of labelled texts that picks words")
    dataset = trained.dataset(subset)
    samples = (dataset.collater([dataset[index]]) for index in spread(len(dataset), count))
    of_sample = _of_classifier if is_classifier else _of_ranker
    with torch.no_grad():
        return [of_sample(model, task, sample) for sample in samples]


def _of_classifier(
    model: SequenceClassifier | SequencePairClassifier, task: FairseqTask, sample: dict[str, Any]
) -> PickedWords:
    net_input = sample["net_input"]
    texts = []
    for side, pooled in zip(("src", "other"), model.pooled(**net_input), strict=False):
        tokens, lengths = (net_input[f"{side}_{name}"] for name in ("tokens", "lengths"))
        texts.append(_picked(task, tokens[0], _shares(pooled.positions["max"][0], int(lengths[0]))))
    label = task.labels[int(sample["target"].view(-1)[0])]
    return PickedWords(texts, label, task.labels[int(model(**net_input)[0].argmax())])


def _of_ranker(model: SequenceRanker, task: FairseqTask, sample: dict[str, Any]) -> PickedWords:
    net_input = sample["net_input"]
    scores = model(**net_input)
    first = int(scores.argmax())
    tokens = (net_input["src_tokens"], net_input["candidate_tokens"][first : first + 1])
    lengths = (net_input["src_lengths"], net_input["candidate_lengths"][first : first + 1])
    encoded = [model.encoder(*text) for text in zip(tokens, lengths, strict=True)]
    if model.attention is not None:
        weights = model.attention.weights(*encoded[0], *encoded[1])
        shares = [weight[0, : int(length[0])] for weight, length in zip(weights, lengths, strict=True)]
    else:
        shares = [
            _shares(pool(text.output, text.lengths, ["max"]).positions["max"][0], int(text.lengths[0]))
            for text in encoded
        ]
    texts = [_picked(task, of_text[0], of_words) for of_text, of_words in zip(tokens, shares, strict=True)]
    return PickedWords(texts, str(int(sample["target"][first])), f"{float(scores[first]):.3f}")


def _shares(positions: Tensor, length: int) -> Tensor:
    """Of the features (F,) whose maximum is at each word (length,)."""
    return torch.bincount(positions, minlength=length).float() / len(positions)


def _picked(task: FairseqTask, tokens: Tensor, shares: Tensor) -> PickedText:
    words = [task.dictionary[token] for token in tokens[: len(shares)].tolist()]
    return PickedText(words, shares.tolist())
