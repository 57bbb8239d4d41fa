"""Tests of channel attention."""

from __future__ import annotations

import pytest
import torch

from fairseq_plugins.analysis.channel_attention import channel_attention, strongest
from fairseq_plugins.errors import InputError
from fairseq_plugins.models.shown_attention import layer_details_of

from .models import model_of_architecture


def test_the_phrases_of_the_papers_example() -> None:
    """Figure 3 and Section 5.1: which words a channel connects directly."""
    model = model_of_architecture("mc_rnn_iwslt_de_en")
    words = "home-grown champions have been few and far between at the italian open .".split()
    [sentence] = channel_attention(model, [model.source(" ".join(words))])
    forwards = sentence.layers[0]
    assert (forwards.layer, forwards.direction) == (1, "forwards")
    assert forwards.phrases[4 - 1][2 - 1] == "champions have been"
    assert forwards.phrases[8 - 1][2 - 1] == "few and far between"
    assert forwards.phrases[12 - 1][2 - 1] == "italian open"
    assert forwards.phrases[2 - 1][1 - 1] == "home-grown champions"
    assert [forwards.in_degree[t - 1] for t in (4, 7, 10)] == [[3, 2, 1]] * 3
    backwards = sentence.layers[1]
    assert backwards.direction == "backwards"
    assert backwards.phrases[-1] == ["</s>"] * 3
    assert backwards.in_degree[-4] == [3, 2, 1]  # its fourth step
    assert backwards.phrases[-4] == ["italian open . </s>", "italian open .", "italian open"]


@pytest.mark.system
def test_weights_are_those_of_the_encoder_alone_and_in_a_batch() -> None:
    model = model_of_architecture("mc_rnn_iwslt_de_en")
    [sentence] = channel_attention(model, [model.source("w1 w2 w3 w4")])
    assert [(layer.layer, layer.direction) for layer in sentence.layers] == [
        (1, "forwards"),
        (1, "backwards"),
        (2, "forwards"),
        (2, "backwards"),
    ]
    tokens = [model.source_dictionary.index(f"w{i}") for i in range(1, 5)] + [2]
    for batch, real in (
        (torch.tensor([[1, 1, 1, *tokens], [5, 6, 7, 8, 5, 6, 7, 2]]), slice(3, 8)),
        (torch.tensor([[*tokens, 1, 1, 1], [5, 6, 7, 8, 5, 6, 7, 2]]), slice(0, 5)),
    ):
        with torch.no_grad():
            details = layer_details_of(model.model, batch, "channel_attention")
        for layer, (_, _, alpha) in zip(sentence.layers, details, strict=True):
            assert alpha.shape == (2, 8, 3)
            expected = torch.tensor(layer.attention, dtype=torch.float64)
            torch.testing.assert_close(alpha[0, real], expected, rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(expected.sum(1), torch.ones(5, dtype=torch.float64))


@pytest.mark.system
def test_the_phrases_that_are_most_attended_to() -> None:
    model = model_of_architecture("mc_rnn_iwslt_de_en")
    [sentence] = channel_attention(model, [model.source("w1 w2 w3")])
    lines = strongest(sentence, 3)
    largest = max(weight for layer in sentence.layers for row in layer.attention for weight in row)
    assert len(lines) == 3 and lines[0].startswith(f"{largest:.2f}  layer")


@pytest.mark.system
@pytest.mark.parametrize("architecture", ["rnnsearch_iwslt_de_en", "ho_rnn_iwslt_de_en", "dpn_iwslt_de_en"])
def test_a_model_without_channels(architecture: str) -> None:
    model = model_of_architecture(architecture)
    with pytest.raises(InputError, match=f"the encoder of '{architecture}' has no channels"):
        channel_attention(model, [model.source("w1")])
