"""Predictions for plain text: what is refused before a model is loaded."""

from __future__ import annotations

import pytest

from fairseq_plugins.corpora.labelled_texts import LabelledTextsPreparation
from fairseq_plugins.errors import InputError
from fairseq_plugins.experiments import predict


def test_plain_text_has_no_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    preparation = LabelledTextsPreparation(texts=["premise", "hypothesis"], has_tags=True, metric="accuracy")
    monkeypatch.setattr(predict, "labelled_texts", lambda data: preparation)
    with pytest.raises(InputError, match="best.pt: the model reads a part-of-speech tag .*prepare_entailment.sh --no-"):
        predict.predict(["a\tb"], "best.pt", None)


@pytest.mark.parametrize("lines", ["a text", ["a", None], ["a", b"b"]], ids=repr)
def test_what_is_no_text(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    monkeypatch.setattr(predict, "labelled_texts", lambda data: LabelledTextsPreparation(texts=["text"]))
    with pytest.raises(TypeError, match="^predict"):
        predict.predict(lines, "best.pt", None)
