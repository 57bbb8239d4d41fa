"""Log-mel features, against a discrete Fourier transform and filters that are computed one by one."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
import torch

from fairseq_plugins.modules.log_mel import LogMel, mel, mel_filters

RATE = 2_000


def reference(samples: list[float], features: int, rate: int) -> list[list[float]]:
    """As its definition says it, a number at a time."""
    frame, shift = round(0.025 * rate), round(0.005 * rate)
    points = 1
    while points < frame:
        points *= 2
    before = (frame - shift) // 2
    after = frame - shift - before
    whole = samples[before:0:-1] + samples + samples[-2 : -2 - after : -1]
    top = 2595 * math.log10(1 + rate / 2 / 700)
    corners = [top * place / (features + 1) for place in range(features + 2)]
    frequencies = [rate * k / points for k in range(points // 2 + 1)]
    rows = []
    for start in range(0, len(whole) - frame + 1, shift):
        window = [0.5 - 0.5 * math.cos(2 * math.pi * n / frame) for n in range(frame)]
        part = [w * x for w, x in zip(window, whole[start : start + frame], strict=True)]
        row = []
        for left, middle, right in zip(corners, corners[1:], corners[2:], strict=False):
            power = 0.0
            for k, frequency in enumerate(frequencies):
                place = 2595 * math.log10(1 + frequency / 700)
                weight = float(np.interp(place, [left, middle, right], [0, 1, 0]))
                if weight:
                    value = sum(x * cmath.exp(-2j * math.pi * k * n / points) for n, x in enumerate(part))
                    power += weight * abs(value) ** 2 / frame
            row.append(math.log(max(power, 1e-6)))
        rows.append(row)
    return rows


def test_equals_the_reference() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 105)
    features = LogMel(5, RATE)(x)
    assert features.shape == (10, 2, 5)
    for row in range(2):
        expected = torch.tensor(reference(x[row].double().tolist(), 5, RATE))
        torch.testing.assert_close(features[:, row].double(), expected.double(), rtol=1e-3, atol=1e-3)


def test_half_a_second_has_a_hundred_frames() -> None:
    """DilatedRNN, Section 4.4: 13 features, and inputs of length 100."""
    features = LogMel(13, 16_000)
    assert features(torch.randn(3, 8_000)).shape == (100, 3, 13) and features.frame == 400
    assert not list(features.parameters()) and not features.state_dict()


def test_a_tone_is_in_its_filter() -> None:
    """The mel scale has 1,000 at 1,000 Hz."""
    assert float(mel(torch.tensor(1000.0))) == pytest.approx(1000, abs=0.1)
    time = torch.arange(8_000) / 16_000
    corners = np.linspace(0, float(mel(torch.tensor(8_000.0))), 15)
    for pitch in 300, 1_000, 4_000:
        row = LogMel(13, 16_000)(torch.sin(2 * math.pi * pitch * time).unsqueeze(0))[50, 0]
        assert int(row.argmax()) == int(np.abs(corners[1:-1] - float(mel(torch.tensor(float(pitch))))).argmin())
    assert LogMel(13, 16_000)(torch.zeros(1, 800)).eq(math.log(1e-6)).all(), "silence is finite"


def test_sizes_that_there_cannot_be() -> None:
    with pytest.raises(ValueError, match="80 mel filters are too many for 33 bins of 2,000 samples a second"):
        mel_filters(80, 33, RATE)
    with pytest.raises(ValueError, match="a waveform of 40 samples is shorter than a frame, 50"):
        LogMel(5, RATE)(torch.randn(1, 40))
