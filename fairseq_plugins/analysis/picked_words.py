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


@dataclass(frozen=True)
class PickedWords:
    """One text.

    Attributes:
        words: of the text, as the model reads them
        shares: of the features whose maximum is at each word; they add up to 1
        label: its class
        predicted: what the model takes it for
    """

    words: list[str]
    shares: list[float]
    label: str
    predicted: str


def picked_words(checkpoint: Path, data: PreparedData, count: int, subset: str = "test") -> list[PickedWords]:
    """Runs a classifier over some texts, spread over a set.

    Args:
        checkpoint: of a ``sequence_classifier`` with max pooling
        data: what it was trained on
        count: how many texts
        subset: of which set

    Raises:
        InputError: the model is another, or has no max pooling.
    """
    register()
    checked_checkpoint(checkpoint)
    overrides = {"data": str(data.folder / "bin")}
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides)
    if not isinstance(model, SequenceClassifier) or "max" not in model.poolings:
        raise InputError(f"{checkpoint}: no sequence_classifier with max pooling")
    model.eval()
    task.load_dataset(subset)
    dataset = task.dataset(subset)
    number = len(dataset)
    found = []
    with torch.no_grad():
        for index in range(0, number, max(1, number // count))[:count]:
            sample = dataset.collater([dataset[index]])
            net_input = sample["net_input"]
            positions = model.pooled(**net_input).positions["max"][0]
            [length] = net_input["src_lengths"].tolist()
            shares = torch.bincount(positions, minlength=length).float() / len(positions)
            tokens = net_input["src_tokens"][0, :length].tolist()
            found.append(
                PickedWords(
                    [task.dictionary[token] for token in tokens],
                    shares.tolist(),
                    task.labels[int(sample["target"].view(-1)[0])],
                    task.labels[int(model(**net_input)[0].argmax())],
                )
            )
    return found
