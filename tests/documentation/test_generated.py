"""The page of options, and README's table of models."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fairseq_plugins.documentation import families, options_page
from fairseq_plugins.experiments.recorded_runs import Record, checkpoint_name
from fairseq_plugins.models.presets import PRESETS
from fairseq_plugins.modules import RECURRENT_KINDS, option


def test_the_options_are_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class OwnOptions:
        own: int = option(1, "of a user's own")

    kind = RECURRENT_KINDS["mc_rnn"].__class__("own", "own layer", OwnOptions, None)
    monkeypatch.setitem(RECURRENT_KINDS, "own", kind)
    text = options_page.page()
    for name in RECURRENT_KINDS:
        assert (f"\n### {name}\n" in text) == (name != "own")
    assert text.count("| `--channels` | `3` |") == 1, "a layer's options stand once, not with every model"
    assert "| `--cell` | `lstm` | cell inside the layers (`lstm`, `gru`, `rnn`) |" in text
    assert "\n### recurrent_seq2seq\n" in text and "\n### double_path\n" in text
    assert all(f"| `{name}` |" in text for name in PRESETS)
    assert "${" not in text


def test_a_row_for_each_family() -> None:
    scores = {"test": {"bleu_tokenized": 32.0}}
    multi30k = Record("multi30k_de_en", "mc_rnn_3", "configs/multi30k_de_en/mc_rnn_3.yaml", 1, scores=scores)
    paper = "| MC-RNN | 32.23 tokenised BLEU | IWSLT'14 German-English"
    # A stand-in until the paper's own data is recorded.
    ours = "32.00 (one run) | Multi30k, test 2016"
    assert f"{paper} | {ours} | `scripts/train.sh configs/multi30k_de_en/mc_rnn_3.yaml` |" in families.table([multi30k])
    iwslt = Record("iwslt14_de_en", "mc_rnn_3", "configs/iwslt14_de_en/mc_rnn_3.yaml", 1, scores=scores)
    text = families.table([multi30k, iwslt])
    assert f"{paper} | 32.00 (one run) | the same | `scripts/train.sh configs/iwslt14_de_en/mc_rnn_3.yaml` |" in text
    rcrn = "| RCRN | 96.20 accuracy | TREC"
    assert f"{rcrn} | not recorded yet | – | `scripts/train.sh configs/trec/rcrn.yaml` |" in text
    trec = Record("trec", "rcrn", "configs/trec/rcrn.yaml", 1, scores={"test": {"accuracy": 88.0}})
    without = "the same, without the paper's pretrained word vectors (GloVe and CoVe)"
    assert f"{rcrn} | 88.00 (one run) | {without} |" in families.table([trec])
    differs = {"train": {"stop-time-hours": "2"}}
    path = "configs/pixel_mnist/dilated_rnn.yaml"
    pixels = Record("pixel_mnist", "dilated_rnn", path, 1, differs=differs, scores={"test": {"accuracy": 98.1}})
    assert (
        "| 97.70 accuracy | MNIST pixel by pixel | 98.10 (one run, `--stop-time-hours 2`) | the same | "
        f"`scripts/train.sh {path}` |"
    ) in families.table([pixels])


def test_a_family_shows_no_older_options_and_no_averaged_checkpoint() -> None:
    scores = {"test": {"bleu_tokenized": 32.0}}
    path = "configs/multi30k_de_en/mc_rnn_3.yaml"
    older = Record("multi30k_de_en", "mc_rnn_3", path, 1, scores=scores, differs={"train": {"lr": "1"}})
    averaged = Record("multi30k_de_en", "mc_rnn_3", path, 1, checkpoint=checkpoint_name(5), scores=scores)
    assert "32.00" not in families.table([older, averaged])
