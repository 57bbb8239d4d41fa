"""Networks of DilatedRNN's tests of long memory: sizes, what is read of their outputs, bad options."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fairseq_plugins.errors import InputError
from fairseq_plugins.models.long_memory_network import LongMemoryNetwork, LongMemoryNetworkConfig
from fairseq_plugins.models.sequence_presets import SEQUENCE_PRESETS

PIXELS = SimpleNamespace(input_size=1, output_steps=1, classes=10)
COPYING = SimpleNamespace(input_size=10, output_steps=10, classes=10)
# DilatedRNN's Table 1, in thousands. torch has two biases for each gate, TensorFlow one.
PARAMETERS = {
    ("rnn_pixels", 256): 68,
    ("stacked_rnn_pixels", 20): 7,
    ("lstm_pixels", 256): 270,
    ("stacked_lstm_pixels", 20): 28,
    ("gru_pixels", 256): 200,
    ("stacked_gru_pixels", 20): 21,
    ("skip_rnn_pixels", 20): 11,
    ("dilated_cnn_pixels", 20): 7,
    ("dilated_rnn_pixels", 20): 7,
    ("dilated_rnn_pixels", 50): 44,
    ("dilated_lstm_pixels", 20): 28,
    ("dilated_lstm_pixels", 50): 173,
    ("dilated_gru_pixels", 20): 21,
    ("dilated_gru_pixels", 50): 130,
}


def network(arch: str, task: SimpleNamespace = PIXELS, **options: Any) -> LongMemoryNetwork:
    torch.manual_seed(0)
    cfg = LongMemoryNetworkConfig(**{**SEQUENCE_PRESETS[arch].overrides, **options})
    return LongMemoryNetwork.build_model(cfg, task).eval()


def count(model: LongMemoryNetwork) -> int:
    """The parameters without the second biases of PyTorch's cells, which the paper's have not."""
    return sum(parameter.numel() for name, parameter in model.named_parameters() if "bias_hh" not in name)


@pytest.mark.parametrize(("arch", "hidden_size"), PARAMETERS)
def test_parameters_are_about_the_paper_s(arch: str, hidden_size: int) -> None:
    model = network(arch, hidden_size=hidden_size)
    assert count(model) == pytest.approx(1000 * PARAMETERS[arch, hidden_size], rel=0.1, abs=700)


def test_the_single_skip_layer_is_larger_than_the_paper_says() -> None:
    model = network("skip_rnn_pixels", layers=1, hidden_size=95, lags="1,21")
    assert count(model) == 19_200, "16,000 there; one matrix for both connections would make 10,175"


@pytest.mark.parametrize("arch", [name for name in SEQUENCE_PRESETS if name.endswith("_pixels")])
def test_batch_mates_change_nothing_and_the_last_steps_are_read(arch: str) -> None:
    model = network(arch, COPYING, layers=2, hidden_size=4)
    x = torch.randint(0, 10, (3, 30))
    logits = model(x)
    assert logits.shape == (3, 10, 10)
    torch.testing.assert_close(logits, torch.cat([model(row.unsqueeze(0)) for row in x]), rtol=0, atol=1e-6)
    changed = x.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 10
    assert torch.equal(model(changed)[:, :-1], logits[:, :-1]), "nothing is known of what comes later"
    pixels = network(arch, layers=2, hidden_size=4)
    assert pixels(torch.rand(3, 30)).shape == (3, 10)


def test_the_output_layer_starts_from_n_0_1() -> None:
    model = network("rnn_pixels")
    assert float(model.output.weight.std()) == pytest.approx(1, abs=0.05)
    hidden = network("rnn_pixels", initialization="normal").network.layers[0].rnn.weight_hh_l0
    assert float(hidden.std()) == pytest.approx(1, abs=0.05)


def test_options_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="long_memory_network needs --task long_memory"):
        network("rnn_pixels", SimpleNamespace())
    with pytest.raises(InputError, match="--layers must be at least 1, not 0"):
        network("rnn_pixels", layers=0)
    for options, message in (
        ({"recurrent_layer": "gru"}, "--recurrent-layer is of recurrent layers, and --network dilated_cnn has none"),
        ({"first_dilation": 4}, "--first-dilation is of recurrent layers, and --network dilated_cnn has none"),
    ):
        with pytest.raises(InputError, match=message):
            network("dilated_cnn_pixels", **options)
    with pytest.raises(InputError, match="--recurrent-layer mc_rnn: .* no such layer.*; give --initialization layers"):
        network("rnn_pixels", recurrent_layer="mc_rnn")
    assert network("rnn_pixels", recurrent_layer="mc_rnn", initialization="layers", hidden_size=4)
    with pytest.raises(InputError, match="--recurrent-layer ho_rnn: lags are numbers between commas"):
        network("skip_rnn_pixels", lags="x")
