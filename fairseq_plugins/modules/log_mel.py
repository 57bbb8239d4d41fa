"""Log-mel features of a waveform, which DilatedRNN's paper (Chang et al. 2017, Section 4.4) calls MFCC.

A few lines over ``torch.fft``, on the model's own device, and no library: torchaudio is bound to one version of
PyTorch, librosa brings a compiler (numba), and what computes frame by frame in C++ moves a training's data to the CPU.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WINDOW, SHIFT = 0.025, 0.005
"""Of the frames, in seconds."""
_FLOOR = 1e-6
"""The least power that is told from silence: of a waveform whose mean square is one, 60 dB below a filter's mean."""


def mel(frequency: Tensor) -> Tensor:
    """Hertz on the mel scale, 2595 log10(1 + f / 700) (O'Shaughnessy 1987)."""
    return 2595 * torch.log10(1 + frequency / 700)


def mel_filters(features: int, bins: int, rate: int) -> Tensor:
    """Triangles that are as wide on the mel scale and half overlap, from 0 to half the rate: (bins, features).

    Args:
        features: how many.
        bins: of the spectrum, from 0 to half the rate.
        rate: samples a second.

    Raises:
        ValueError: a triangle has no bin in it.
    """
    half = torch.tensor(rate / 2, dtype=torch.float64)
    corners = torch.linspace(0, float(mel(half)), features + 2, dtype=torch.float64)
    places = mel(torch.linspace(0, float(half), bins, dtype=torch.float64)).unsqueeze(1)
    rising = (places - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - places) / (corners[2:] - corners[1:-1])
    filters = torch.minimum(rising, falling).clamp(min=0)
    if not filters.any(dim=0).all():
        raise ValueError(f"{features} mel filters are too many for {bins} bins of {rate:,} samples a second")
    return filters.float()


class LogMel(nn.Module):
    """The natural logarithm of the power in each mel filter, a frame every 5 ms.

    Frames are of 25 ms under a Hann window; the waveform is reflected at both ends, so that N samples have N / shift
    frames. Nothing is learned.

    Args:
        features: mel filters.
        rate: samples a second.

    Raises:
        ValueError: the filters are too many for the rate, or none.
    """

    window: Tensor
    filters: Tensor

    def __init__(self, features: int, rate: int) -> None:
        super().__init__()
        if features < 1:
            raise ValueError(f"{features} mel filters are none")
        self.frame, self.shift = round(WINDOW * rate), round(SHIFT * rate)
        self.points = 1 << (self.frame - 1).bit_length()
        self.register_buffer("window", torch.hann_window(self.frame), persistent=False)
        self.register_buffer("filters", mel_filters(features, self.points // 2 + 1, rate), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, N), a waveform -> (N // shift, B, features), float32.

        Raises:
            ValueError: x is shorter than a frame.
        """
        if x.size(1) < self.frame:
            raise ValueError(f"a waveform of {x.size(1)} samples is shorter than a frame, {self.frame}")
        before = (self.frame - self.shift) // 2
        around = (before, self.frame - self.shift - before)
        frames = F.pad(x.float().unsqueeze(1), around, mode="reflect").squeeze(1).unfold(1, self.frame, self.shift)
        power = torch.fft.rfft(frames * self.window.float(), self.points).abs().square() / self.frame
        features: Tensor = (power @ self.filters.float()).clamp(min=_FLOOR).log()
        return features.transpose(0, 1)
