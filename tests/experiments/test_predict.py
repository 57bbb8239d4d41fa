"""Predictions for plain text: what is refused before a model reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fairseq_plugins.corpora.labelled_texts import LabelledTextsPreparation
from fairseq_plugins.decoding.classification import ClassificationModel
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.decoding.trained_model import BatchOptions
from fairseq_plugins.errors import InputError


def model_of(preparation: LabelledTextsPreparation) -> ClassificationModel:
    """One that reads nothing."""
    data = PreparedData(Path("data"), preparation)
    return ClassificationModel([Path("best.pt")], [], [], None, None, data, torch.device("cpu"))


def test_plain_text_has_no_tags() -> None:
    model = model_of(LabelledTextsPreparation(texts=["premise", "hypothesis"], has_tags=True, metric="accuracy"))
    with pytest.raises(InputError, match="best.pt: the model reads a part-of-speech tag .*prepare_entailment.sh --no-"):
        model.predictions_of(["a\tb"], BatchOptions())


@pytest.mark.parametrize("lines", ["a text", ["a", None], ["a", b"b"]], ids=repr)
def test_what_is_no_text(lines: list[str]) -> None:
    with pytest.raises(TypeError, match="^predict"):
        model_of(LabelledTextsPreparation(texts=["text"])).predictions_of(lines, BatchOptions())


def test_lines_that_cannot_be_predicted() -> None:
    model = model_of(LabelledTextsPreparation(texts=["premise", "hypothesis"]))
    assert model.predictions_of(["", "  "], BatchOptions()) == [None, None]
    with pytest.raises(InputError, match="line 2: 1 texts, but the model reads premise TAB hypothesis"):
        model.predictions_of(["", "a"], BatchOptions())
    with pytest.raises(InputError, match="line 1: one of the texts is empty"):
        model.predictions_of(["a\t "], BatchOptions())
