"""Models say themselves what attention they can show."""

from __future__ import annotations

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from torch import Tensor

from fairseq_plugins.models.shown_attention import ShowsAttention, attention_of, layer_details_of

from .tasks import build_architecture, make_task

BATCH = {
    "src_tokens": torch.tensor([[5, 6, 7, 2], [8, 9, 2, 1]]),
    "src_lengths": torch.tensor([4, 3]),
    "prev_output_tokens": torch.tensor([[2, 10, 11], [2, 12, 13]]),
}


def model_of(architecture: str) -> FairseqEncoderDecoderModel:
    torch.manual_seed(1)
    return build_architecture(architecture, make_task(40)).eval()


@pytest.mark.system
@pytest.mark.parametrize(
    ("architecture", "flows", "gates"),
    [
        ("dpn_iwslt_de_en", ["cc", "ca", "ac", "aa"], ["cnn.san", "san.cnn", "output.san"]),
        ("mc_rnn_iwslt_de_en", ["attention"], []),
        ("lstm", ["attention"], []),
        ("transformer", ["attention"], []),
    ],
)
def test_weights_over_the_source(architecture: str, flows: list[str], gates: list[str]) -> None:
    model = model_of(architecture)
    with torch.no_grad():
        shown = attention_of(model, BATCH)
    assert list(shown.flows) == flows and list(shown.gates) == gates
    assert isinstance(model, ShowsAttention) == bool(gates)
    for weights in shown.flows.values():
        assert weights.shape == (2, 3, 4)
        torch.testing.assert_close(weights.sum(dim=2), torch.ones(2, 3))
        assert not weights[1, :, 3].any(), "padding"
    for values in shown.gates.values():
        assert values.shape[:2] == (2, 3) and values.dim() == 3


def test_a_model_that_says_nothing() -> None:
    model = model_of("lstm")

    def silent(prev_output_tokens: Tensor, encoder_out: object) -> tuple[None, None]:
        return None, None

    model.decoder.forward = silent
    assert attention_of(model, BATCH) is None


@pytest.mark.system
def test_details_of_layers() -> None:
    layers = layer_details_of(model_of("mc_rnn_iwslt_de_en"), BATCH["src_tokens"], "channel_attention")
    assert [(layer, direction) for layer, direction, _ in layers] == [
        (1, "forwards"),
        (1, "backwards"),
        (2, "forwards"),
        (2, "backwards"),
    ]
    assert {tuple(alpha.shape) for _, _, alpha in layers} == {(2, 4, 3)}
    for architecture in "rnnsearch_iwslt_de_en", "dpn_iwslt_de_en", "lstm":
        assert layer_details_of(model_of(architecture), BATCH["src_tokens"], "channel_attention") == []
