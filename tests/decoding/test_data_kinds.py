"""Models are refused data of a kind that they do not read; what is a user's own is not."""

from __future__ import annotations

import dataclasses

import pytest

from fairseq_plugins.corpora import preparation
from fairseq_plugins.corpora.preparation import Preparation
from fairseq_plugins.decoding.prepared_data import PreparedData
from fairseq_plugins.errors import InputError


@pytest.mark.parametrize(
    ("arch", "task", "message"),
    [
        ("dpn_iwslt_de_en", None, "--arch dpn_iwslt_de_en reads pairs of texts"),
        ("transformer", "translation", "--task translation reads pairs of texts"),
        ("rcrn_classifier", None, "--arch rcrn_classifier reads labelled texts"),
        ("bilstm_ranking", None, "--arch bilstm_ranking reads labelled texts"),
        ("rcrn_entailment", None, "--arch rcrn_entailment reads labelled texts"),
        ("dilated_gru_pixels", None, "--arch dilated_gru_pixels reads generated sequences"),
        ("awd_lstm_ptb", "streaming_language_modeling", None),
        ("transformer_lm", "language_modeling", None),
        ("roberta", None, None),
        ("transformer", "a_user_s_own", None),
        ("a_user_s_own", None, None),
    ],
)
def test_running_text(text_data: PreparedData, arch: str, task: str | None, message: str | None) -> None:
    if message is None:
        text_data.check_model(arch, task)
        return
    with pytest.raises(InputError) as raised:
        text_data.check_model(arch, task)
    assert str(raised.value) == (
        f"{text_data.folder}: a corpus of running text, but {message}; name other data by --data, or another "
        f"configuration"
    )


def test_pairs(data: PreparedData) -> None:
    data.check_model("dpn_iwslt_de_en", None)
    with pytest.raises(InputError, match="a corpus of pairs of texts, but --arch awd_lstm_ptb reads running text;"):
        data.check_model("awd_lstm_ptb", None)
    with pytest.raises(InputError, match="but --task streaming_language_modeling reads running text;"):
        data.check_model("awd_lstm_ptb", "streaming_language_modeling")


def test_a_kind_of_a_user_s_own(data: PreparedData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "_KINDS", dict(preparation._KINDS))

    class OwnPreparation(Preparation):
        kind = "own"

    own = dataclasses.replace(data, preparation=OwnPreparation(metric="bleu"))
    own.check_model("awd_lstm_ptb", "streaming_language_modeling")
