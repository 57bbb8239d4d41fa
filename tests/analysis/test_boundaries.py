"""Where an HM-RNN encoder sees boundaries."""

from __future__ import annotations

import pytest

from fairseq_plugins.analysis.boundaries import boundaries, segments
from fairseq_plugins.errors import InputError
from fairseq_plugins.report.drawings import draw_boundaries

from .models import model_of_architecture


@pytest.mark.system
def test_what_the_detectors_say_is_drawn() -> None:
    model = model_of_architecture("hm_rnn_iwslt_de_en")
    [forwards] = model.model.encoder.stack.layers
    [backwards] = model.model.encoder.stack.backward_layers
    forwards.bias[0].data[-1], backwards.bias[0].data[-1] = 100, -100
    [sentence] = boundaries(model, [model.source("w1 w2 w3")])
    assert sentence.directions == {"forwards": [[1]] * 4, "backwards": [[0]] * 4}
    assert segments(sentence) == [
        "  level 1, forwards: w1 | w2 | w3 | </s> |",
        "  level 1, backwards: w1 w2 w3 </s>",
    ]
    drawn = [axis.images[0].get_array().tolist() for axis in draw_boundaries(sentence).axes]
    assert drawn == [[[1, 1, 1, 1]], [[0, 0, 0, 0]]]


@pytest.mark.system
@pytest.mark.parametrize("architecture", ["rnnsearch_iwslt_de_en", "dpn_iwslt_de_en"])
def test_a_model_without_boundaries(architecture: str) -> None:
    model = model_of_architecture(architecture)
    with pytest.raises(InputError, match=f"the encoder of '{architecture}' has no boundaries"):
        boundaries(model, [model.source("w1")])
