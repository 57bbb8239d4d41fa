"""Waveforms: read from files, cut into windows, or generated."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from fairseq_plugins.errors import InputError

SAMPLE_TYPE = "<i2"
UNIT = 2048
"""What a sample of one is as an integer: speech peaks at less than the 16 that int16 has room for then."""
QUIET = 40
"""Windows that are so many decibels below the loudest of their recording say nothing of it, and are left out."""
_SILENCE = 1e-4
"""The peak of a recording in which there is nothing, of 1: -80 dB."""
_SHORT_CHUNK = re.compile(r"^\s*(?!RIFF|RIFX|RF64|FORM)\S.*?:\s*(\d+)\s*\(should be", re.MULTILINE)
"""What libsndfile says of samples that end too soon. The whole file's size is often wrong where none are missing."""
_STREAMED = 2**31 - 2**16
"""Sizes from here on were written by programs that did not know yet how much would come."""


def read_recording(path: Path, rate: int, window: int) -> np.ndarray | None:
    """The samples of a recording, mono, int16; None where it is silent.

    :data:`UNIT` is the root of their mean square, where quiet windows (:func:`windows_of`) do not count.

    Args:
        path: what libsndfile reads: WAV, FLAC, Ogg, MP3 …
        rate: samples a second
        window: samples

    Raises:
        InputError: there is no such file, it is no sound, is cut off, has no samples or no numbers in it, or was
            sampled less often than that.
    """
    # Not at the head of the file: a training on prepared windows needs neither.
    import soundfile
    import soxr

    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with soundfile.SoundFile(path) as file:
            own_rate = file.samplerate
            is_cut = any(int(size) < _STREAMED for size in _SHORT_CHUNK.findall(file.extra_info))
            channels = file.read(dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: no recording that can be read ({error.error_string}); fetch it again") from None
    if is_cut:
        raise InputError(f"{path}: the file is not whole; fetch it again")
    if own_rate < rate:
        raise InputError(
            f"{path}: {own_rate:,} samples a second, but --rate is {rate:,}, and what is missing cannot be made up: "
            f"give --rate {own_rate}, for all recordings"
        )
    if not len(channels):
        raise InputError(f"{path}: no samples in it; leave it out")
    if not np.isfinite(channels).all():
        raise InputError(f"{path}: samples that are no numbers; leave it out, or write it anew")
    samples = channels.mean(axis=1)
    if np.abs(samples).max() < _SILENCE:
        samples = channels[:, 0]  # channels of opposite phase are silent together
    if own_rate > rate:
        samples = soxr.resample(samples, own_rate, rate)
    if not len(samples) or np.abs(samples).max() < _SILENCE:
        return None
    level = np.sqrt(np.mean(np.square(_without_quiet_windows(samples, window), dtype=np.float64)))
    limits = np.iinfo(np.int16)
    return np.clip(np.rint(samples * (UNIT / level)), limits.min, limits.max).astype(np.int16)


def windows_of(samples: np.ndarray, window: int) -> list[int]:
    """Where the windows of a recording begin: one behind the other, without quiet ones (:data:`QUIET`) and without what
    is left at the end.

    A recording that is shorter than a window has one that begins before it.
    """
    if len(samples) <= window:
        return [len(samples) - window]
    whole = samples[: len(samples) // window * window].reshape(-1, window)
    power = np.square(whole, dtype=np.float64).mean(axis=1)
    return [int(number) * window for number in np.flatnonzero(power >= power.max() * 10 ** (-QUIET / 10))]


def _without_quiet_windows(samples: np.ndarray, window: int) -> np.ndarray:
    is_kept = np.ones(len(samples), dtype=bool)
    for start in {*range(0, len(samples) - window + 1, window)}.difference(windows_of(samples, window)):
        is_kept[start : start + window] = False
    return samples[is_kept]


def write_voices(folder: Path, recordings: int, rate: int, voices: int = 4, seconds: float = 1.0) -> None:
    """Writes ``voice1/1.wav`` and so on: harmonics of a pitch that wavers, through a voice's own formants, with noise.

    They show that everything works, and nothing about speech.
    """
    import soundfile

    for voice in range(1, voices + 1):
        (folder / f"voice{voice}").mkdir(parents=True, exist_ok=True)
        for number in range(1, recordings + 1):
            generator = np.random.default_rng((voice, number))
            time = np.arange(round(seconds * rate)) / rate
            pitch = 70 * 1.3**voice * (1 + 0.05 * np.sin(2 * np.pi * 3 * time + generator.uniform(0, 6)))
            phase = 2 * np.pi * np.cumsum(pitch) / rate
            overtones = np.arange(1, 1 + int(rate / 2 / pitch.max()))
            formants = 300 * np.array([1, 4]) * 1.1**voice
            strengths = sum(np.exp(-(((overtones * pitch.mean() - formant) / 150) ** 2)) for formant in formants)
            sound = (strengths[:, None] * np.sin(overtones[:, None] * phase)).sum(axis=0)
            sound += 0.1 * generator.standard_normal(len(time))
            soundfile.write(folder / f"voice{voice}" / f"{number}.wav", 0.5 * sound / np.abs(sound).max(), rate)
