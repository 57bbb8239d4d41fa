"""The classes of recordings, of which a model predicts those of windows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..corpora.waveforms import read_recording
from ..errors import InputError
from .classification import ClassificationModel
from .trained_model import BatchOptions, Hypothesis, Stopwatch


def classify_recordings(model: ClassificationModel, paths: Sequence[Path], options: BatchOptions) -> list[Hypothesis]:
    """What a model makes of recordings: the class whose probability is highest in the mean over the windows, and the
    natural logarithm of each class's mean.

    Args:
        model: of labelled recordings
        paths: their files
        options: how windows are put together

    Raises:
        InputError: a recording cannot be read, or is silent.
    """
    steps = model.data.labelled_audio
    recordings = []
    for path in paths:
        if (samples := read_recording(path, steps.sampling_rate, steps.window)) is None:
            raise InputError(f"{path}: silence from its beginning to its end, which has no class; leave it out")
        recordings.append(samples)
    if not recordings:
        return []
    dataset, owners = model.task.dataset_of_recordings(recordings)
    log_probabilities: list[list[list[float]]] = [[] for _ in recordings]
    for number, hypothesis in model.predict(dataset, options, Stopwatch()):
        log_probabilities[owners[number]].append(hypothesis.log_probabilities)
    means = [np.exp(np.array(windows)).mean(axis=0) for windows in log_probabilities]
    return [Hypothesis(steps.labels[int(mean.argmax())], np.log(np.maximum(mean, 1e-300)).tolist()) for mean in means]
