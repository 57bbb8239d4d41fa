"""Which words of a text a classifier's max pooling takes its features from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import checkpoint_utils

from .. import register
from ..checkpoints import checked_checkpoint
from ..errors import InputError
from ..experiments.prepared_data import PreparedData
from ..models.sequence_classifier import SequenceClassifier
from ..models.sequence_pair_classifier import SequencePairClassifier


@dataclass(frozen=True)
class PickedText:
    """One text.

    Attributes:
        words: of the text, as the model reads them
        shares: of the features whose maximum is at each word; they add up to 1
    """

    words: list[str]
    shares: list[float]


@dataclass(frozen=True)
class PickedWords:
    """One example.

    Attributes:
        texts: its text, or both of a pair
        label: its class
        predicted: what the model takes it for
    """

    texts: list[PickedText]
    label: str
    predicted: str


def picked_words(checkpoint: Path, data: PreparedData, count: int, subset: str = "test") -> list[PickedWords]:
    """Runs a classifier over some examples, spread over a set.

    Args:
        checkpoint: of a ``sequence_classifier`` or ``sequence_pair_classifier`` with max pooling
        data: what it was trained on
        count: how many examples
        subset: of which set

    Raises:
        InputError: the model is another, or has no max pooling.
    """
    register()
    checked_checkpoint(checkpoint)
    overrides = {"data": str(data.folder / "bin")}
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides)
    if not isinstance(model, (SequenceClassifier, SequencePairClassifier)) or "max" not in model.poolings:
        raise InputError(f"{checkpoint}: no classifier of texts with max pooling")
    model.eval()
    task.load_dataset(subset)
    dataset = task.dataset(subset)
    number = len(dataset)
    found = []
    with torch.no_grad():
        for index in range(0, number, max(1, number // count))[:count]:
            sample = dataset.collater([dataset[index]])
            net_input = sample["net_input"]
            texts = []
            for side in ("src", "other")[: len(task.inputs)]:
                tokens, lengths = (net_input[f"{side}_{name}"] for name in ("tokens", "lengths"))
                positions = model.pooled(tokens, lengths, net_input.get(f"{side}_tags")).positions["max"][0]
                shares = torch.bincount(positions, minlength=int(lengths[0])).float() / len(positions)
                words = [task.dictionary[token] for token in tokens[0, : int(lengths[0])].tolist()]
                texts.append(PickedText(words, shares.tolist()))
            found.append(
                PickedWords(
                    texts,
                    task.labels[int(sample["target"].view(-1)[0])],
                    task.labels[int(model(**net_input)[0].argmax())],
                )
            )
    return found
