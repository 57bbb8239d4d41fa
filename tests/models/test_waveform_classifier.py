"""Networks over waveforms and their features: the paper's parameters, what is read, bad options; moving windows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_plugins.errors import InputError
from fairseq_plugins.models.sequence_presets import SEQUENCE_PRESETS
from fairseq_plugins.models.waveform_classifier import WaveformClassifier, WaveformClassifierConfig
from fairseq_plugins.tasks.waveform_classification import WindowDataset

VCTK = SimpleNamespace(sampling_rate=16_000, window=8_000, classes=109)
ARCHITECTURES = [name for name in SEQUENCE_PRESETS if name.endswith("_audio")]
# DilatedRNN's Table 3, in thousands, and how many layers its figure counts: one more than it names where there are
# several. Nothing counts biases, nor the fusion's 8 or 32 weights.
PARAMETERS = [
    ("stacked_log_mel_gru_audio", {}, 6, 16),
    ("log_mel_gru_audio", {}, 1, 68),
    ("fused_gru_audio", {"first_dilation": 32}, 1, 225),
    ("fused_gru_audio", {}, 1, 225),
    ("dilated_gru_audio", {"first_dilation": 32, "layers": 6}, 7, 103),
    ("dilated_gru_audio", {}, 9, 133),
]


def network(arch: str, task: SimpleNamespace = VCTK, **options: Any) -> WaveformClassifier:
    torch.manual_seed(0)
    cfg = WaveformClassifierConfig(**{**SEQUENCE_PRESETS[arch].overrides, **options})
    return WaveformClassifier.build_model(cfg, task).eval()


def weights(model: WaveformClassifier) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.dim() > 1)


@pytest.mark.parametrize(("arch", "options", "counted_layers", "thousands"), PARAMETERS)
def test_the_paper_s_parameters(arch: str, options: dict[str, int], counted_layers: int, thousands: int) -> None:
    """All six figures, to the thousand, by the weights of one layer more."""
    model = network(arch, **{**options, "layers": counted_layers})
    assert weights(model) // 1000 == thousands
    named = network(arch, **options)
    layers = len(named.network.layers)
    assert layers == counted_layers - (counted_layers > 1)
    a_layer = 3 * 2 * named.network.output_size**2
    assert weights(model) - weights(named) == (a_layer if layers > 1 else 0)


def test_dilations_and_fusion_are_the_paper_s() -> None:
    layers = network("dilated_gru_audio").network.layers
    assert [layer.dilation for layer in layers] == [8, 16, 32, 64, 128, 256, 512, 1024]
    assert [layer.fusion_width for layer in layers] == [1] * 7 + [8]
    layers = network("dilated_gru_audio", first_dilation=32, layers=6).network.layers
    assert [layer.dilation for layer in layers] == [32, 64, 128, 256, 512, 1024] and layers[-1].fusion_width == 32


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_sample_matters_and_batch_mates_do_not(arch: str) -> None:
    task = SimpleNamespace(sampling_rate=1_000, window=100, classes=3)
    sizes = {"log_mel": 3} if "log_mel" in arch else {}
    model = network(arch, task, hidden_size=4, layers=2 if "fused" not in arch else 1, **sizes)
    x = torch.randn(3, 100)
    logits = model(x)
    assert logits.shape == (3, 3)
    torch.testing.assert_close(logits, torch.cat([model(row.unsqueeze(0)) for row in x]), rtol=0, atol=1e-5)
    for place in 93, 96, 99:
        changed = x.clone()
        changed[:, place] += 3
        assert not torch.allclose(model(changed), logits, atol=1e-4), "the fusion reads what lies between"


def test_only_what_is_read_is_fused() -> None:
    """The last output is the same, and so are the gradients, whether the others are fused or not."""
    x = torch.randn(2, 50)
    results = []
    for steps in (1, None):
        model = network("dilated_gru_audio", hidden_size=4, layers=2)
        assert model.network.layers[-1].fused_steps == 1
        model.network.layers[-1].fused_steps = steps
        logits = model(x)
        results.append([logits, *torch.autograd.grad(logits.sum(), list(model.parameters()))])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_options_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="waveform_classifier needs --task waveform_classification"):
        network("dilated_gru_audio", SimpleNamespace(output_steps=1))
    with pytest.raises(InputError, match="--log-mel must be at least 0, not -1"):
        network("dilated_gru_audio", log_mel=-1)
    with pytest.raises(InputError, match="--log-mel 300: 300 mel filters are too many for 257 bins of 16,000"):
        network("dilated_gru_audio", log_mel=300)
    with pytest.raises(InputError, match="a window of 100 samples is shorter than a frame, 400; prepare longer"):
        network("log_mel_gru_audio", SimpleNamespace(sampling_rate=16_000, window=100, classes=3))


def windows(is_renewed: bool) -> WindowDataset:
    """Of recordings of 10 and 3 samples, whose every sample is its number."""
    samples = np.concatenate([np.arange(10), np.arange(11, 14)]).astype(np.int16) * 2048
    rows = np.array([(0, 10, 4, 1), (10, 3, -1, 0)])
    return WindowDataset(samples, rows, 4, (1,), is_renewed)


def test_held_out_windows_stay() -> None:
    batch = windows(False).collater([0, 1])
    assert batch["net_input"]["x"].tolist() == [[4, 5, 6, 7], [0, 11, 12, 13]], "silence comes first"
    assert batch["target"].tolist() == [1, 0]


def test_windows_move_within_their_recording_in_training() -> None:
    dataset = windows(True)
    starts = set()
    for epoch in range(1, 60):
        dataset.set_epoch(epoch)
        long, short = dataset.collater([0, 1])["net_input"]["x"].tolist()
        assert long == list(range(int(long[0]), int(long[0]) + 4)) and short == [0, 11, 12, 13]
        assert dataset.collater([0])["net_input"]["x"][0].tolist() == long, "the same within an epoch"
        starts.add(long[0])
    assert starts == {2, 3, 4, 5, 6}, "half a window to either side"
