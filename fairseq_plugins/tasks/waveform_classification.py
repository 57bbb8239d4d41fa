"""``--task waveform_classification``: the class of a window of a waveform, such as who speaks.

DilatedRNN (Chang et al. 2017), Section 4.4. In training the start of each window moves by up to half a window within
its recording, anew in each epoch; held-out windows stay. A recording that is shorter than a window follows silence.

What is predicted of each window: the class, and the natural logarithm of each class's probability.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING
from torch import Tensor

from ..corpora.labelled_audio import SAMPLES, WINDOWS
from ..corpora.waveforms import SAMPLE_TYPE, UNIT, windows_of
from ..errors import InputError
from .long_memory import SequenceDataset
from .predictions import OF_CLASSES, Prediction, check_criterion


@dataclass
class WaveformClassificationConfig(FairseqDataclass):
    """The options of ``waveform_classification``; the preparation of the data says them."""

    data: str = field(default=MISSING, metadata={"help": "folder with train.samples, train.windows.npy …"})
    sampling_rate: int = field(default=16_000, metadata={"help": "samples a second"})
    window: int = field(default=8_000, metadata={"help": "samples that are classified together"})
    seed: int = II("common.seed")


class WindowDataset(SequenceDataset):
    """See the head of this file.

    Args:
        samples: of all recordings, one behind the other, (N,) int16, :data:`.UNIT` is one.
        windows: (W, 4): where the recording begins, how long it is, where the window begins in it, the class's number.
        length: of a window.
    """

    def __init__(
        self, samples: np.ndarray, windows: np.ndarray, length: int, seed: tuple[int, ...], is_renewed: bool
    ) -> None:
        super().__init__(len(windows), length, seed, is_renewed)
        self.samples, self.windows = samples, windows

    def batch(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """x (B, length), of mean square one over a recording, target (B,)."""
        x = np.zeros((len(indices), self.length), np.float32)
        for row, index in zip(x, indices, strict=True):
            first, count, start, _ = map(int, self.windows[index])
            if self.is_renewed and count > self.length:
                moved = start + self.generator(index).integers(-self.length // 2, self.length // 2 + 1)
                start = int(np.clip(moved, 0, count - self.length))
            row[max(0, -start) :] = self.samples[first + max(0, start) : first + start + self.length]
        x /= UNIT
        return torch.from_numpy(x), torch.from_numpy(self.windows[indices, 3])


@register_task("waveform_classification", dataclass=WaveformClassificationConfig)
class WaveformClassificationTask(FairseqTask):
    """See the head of this file."""

    cfg: WaveformClassificationConfig
    data_kind = "labelled_audio"
    source_dictionary = None

    def __init__(self, cfg: WaveformClassificationConfig, labels: Dictionary) -> None:
        super().__init__(cfg)
        self.label_dictionary = labels

    @classmethod
    def setup_task(cls, cfg: WaveformClassificationConfig, **unused: Any) -> "WaveformClassificationTask":
        """Raises InputError if there is no prepared data."""
        path = Path(cfg.data) / "label" / "dict.txt"
        if not path.is_file():
            raise InputError(f"{path}: no such file; give the bin/ of labelled recordings ('fairseq-plugins prepare')")
        for option, value in (("--sampling-rate", cfg.sampling_rate), ("--window", cfg.window)):
            if value < 1:
                raise InputError(f"{option} must be at least 1, not {value}")
        return cls(cfg, Dictionary.load(str(path)))

    @property
    def target_dictionary(self) -> Dictionary:
        return self.label_dictionary

    @property
    def sampling_rate(self) -> int:
        return self.cfg.sampling_rate

    @property
    def window(self) -> int:
        return self.cfg.window

    @property
    def labels(self) -> list[str]:
        """The classes, in the order of their numbers."""
        labels: list[str] = self.label_dictionary.symbols[self.label_dictionary.nspecial :]
        return labels

    @property
    def classes(self) -> int:
        return len(self.labels)

    def max_positions(self) -> None:
        """Windows may have any length."""

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> FairseqCriterion:
        """Raises InputError if the criterion is not one of classes."""
        criterion = super().build_criterion(cfg, from_checkpoint)
        check_criterion(criterion, cfg, "waveform_classification", "sequence_classification", OF_CLASSES)
        return criterion

    def load_dataset(self, split: str, combine: bool = False, is_evaluated: bool = False, **unused: Any) -> None:
        """Raises InputError if there is no such set."""
        folder = Path(self.cfg.data)
        try:
            windows = np.load(folder / f"{split}{WINDOWS}")
            samples = np.memmap(folder / f"{split}{SAMPLES}", SAMPLE_TYPE, "r")
        except FileNotFoundError as error:
            raise InputError(f"{error.filename}: no such file; prepare the recordings again") from None
        is_renewed = split == "train" and not is_evaluated
        self.datasets[split] = WindowDataset(samples, windows, self.window, (self.cfg.seed,), is_renewed)

    def dataset_of_recordings(self, recordings: Sequence[np.ndarray]) -> tuple[WindowDataset, list[int]]:
        """The windows of recordings as :func:`.read_recording` returns them, and of which recording each is."""
        windows, owners, first = [], [], 0
        for owner, samples in enumerate(recordings):
            starts = windows_of(samples, self.window)
            windows += [(first, len(samples), start, 0) for start in starts]
            owners += [owner] * len(starts)
            first += len(samples)
        dataset = WindowDataset(np.concatenate(recordings), np.array(windows), self.window, (0,), False)
        return dataset, owners

    def predictions(
        self, sample: dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> list[Prediction]:
        """The class of each window, and the logarithm of each class's probability."""
        log_probabilities, labels = criterion.log_probabilities(model, sample), self.labels
        chosen = log_probabilities.argmax(dim=-1).tolist()
        return [(labels[number], row) for number, row in zip(chosen, log_probabilities.tolist(), strict=True)]
