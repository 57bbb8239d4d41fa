"""``--task long_memory``: copy memory, and MNIST's digits pixel by pixel.

DilatedRNN (Chang et al. 2017), Section 4.1 and 4.2. Copy memory: ten symbols drawn from 0 … 7, T - 1 times 8, eleven
times 9; at the last ten steps the ten symbols are wanted. Training sequences are drawn anew in each epoch. Pixels:
values in 0 … 1, the digit is wanted at the last step; where the sequence is longer than 784, noise from U(0, 1) follows
the pixels, new in each epoch of training and the same whenever a held-out sequence is read.

What is predicted of each sequence: the digit, and the natural logarithm of each digit's probability; of copy memory the
symbols, and the logarithms of the right ones' probabilities.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import FairseqDataset
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING
from torch import Tensor

from ..command_parser import flag
from ..corpora.generated_sequences import COPIED, PERMUTATION_SEED, PROBLEMS, SYMBOLS
from ..errors import InputError
from .predictions import OF_CLASSES, Prediction, check_criterion

WAITING, RECALL = SYMBOLS, SYMBOLS + 1
_PROBLEMS = ChoiceEnum(list(PROBLEMS))


@dataclass
class LongMemoryConfig(FairseqDataclass):
    """The options of ``long_memory``; the first ones are said by the preparation of the data."""

    data: str = field(default=MISSING, metadata={"help": "folder with valid.npz, test.npz …"})
    problem: _PROBLEMS = field(  # type: ignore[valid-type]  # fairseq makes the class
        default="copy_memory", metadata={"help": "what is remembered"}
    )
    sequence_length: int = field(default=500, metadata={"help": "T of copy memory; all steps of pixels"})
    permute: bool = field(default=False, metadata={"help": "pixels in a fixed order drawn at random"})
    epoch_sequences: int = field(
        default=12_800, metadata={"help": "training sequences of copy memory that are called an epoch"}
    )
    seed: int = II("common.seed")


class SequenceDataset(FairseqDataset):
    """Sequences of one length that are made when they are asked for.

    Args:
        count: how many.
        length: steps of each.
        seed: of what is drawn.
        is_renewed: what is drawn is new in each epoch.
    """

    def __init__(self, count: int, length: int, seed: tuple[int, ...], is_renewed: bool) -> None:
        super().__init__()
        self.count, self.length, self.seed, self.is_renewed, self.epoch = count, length, seed, is_renewed, 1

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        return index

    def num_tokens(self, index: int) -> int:
        return self.length

    def size(self, index: int) -> int:
        return self.length

    @property
    def sizes(self) -> np.ndarray:
        return np.full(self.count, self.length)

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return not self.is_renewed

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def ordered_indices(self) -> np.ndarray:
        if not self.is_renewed:
            return np.arange(self.count)
        return np.random.default_rng((*self.seed, self.epoch)).permutation(self.count)

    def generator(self, index: int) -> np.random.Generator:
        """What draws for one sequence."""
        return np.random.default_rng((*self.seed, self.epoch if self.is_renewed else 0, index))

    def collater(self, samples: list[int]) -> dict[str, Any]:
        if not samples:
            return {}
        x, target = self.batch(samples)
        return {
            "id": torch.tensor(samples),
            "net_input": {"x": x},
            "target": target,
            "nsentences": len(samples),
            "ntokens": len(samples) * self.length,
        }

    def batch(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """The sequences (B, steps) and what is wanted."""
        raise NotImplementedError


class CopyMemoryDataset(SequenceDataset):
    """See the head of this file.

    Args:
        waiting: T.
        symbols: (N, 10) of a held-out set; None draws them.
    """

    def __init__(self, count: int, waiting: int, seed: tuple[int, ...], symbols: np.ndarray | None = None) -> None:
        super().__init__(count, waiting + 2 * COPIED, seed, symbols is None)
        self.symbols = symbols

    def batch(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """x (B, T + 20) of 0 … 9, target (B, 10)."""
        if self.symbols is None:
            drawn = np.stack([self.generator(index).integers(0, SYMBOLS, COPIED) for index in indices])
        else:
            drawn = self.symbols[indices]
        x = np.full((len(indices), self.length), WAITING)
        x[:, :COPIED] = drawn
        x[:, -COPIED - 1 :] = RECALL
        return torch.from_numpy(x), torch.from_numpy(drawn)


class PixelDataset(SequenceDataset):
    """See the head of this file.

    Args:
        pixels: (N, P), bytes; of MNIST P is 784.
        labels: (N,)
        length: all steps.
        order: of the pixels; None leaves them.
    """

    def __init__(
        self,
        pixels: np.ndarray,
        labels: np.ndarray,
        length: int,
        seed: tuple[int, ...],
        is_renewed: bool,
        order: np.ndarray | None,
    ) -> None:
        super().__init__(len(pixels), length, seed, is_renewed)
        self.pixels = pixels if order is None else pixels[:, order]
        self.labels = labels.astype(np.int64)

    def batch(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """x (B, length) of 0 … 1, target (B,)."""
        x = self.pixels[indices].astype(np.float32) / 255
        rest = self.length - self.pixels.shape[1]
        if rest > 0:
            noise = np.stack([self.generator(index).random(rest, dtype=np.float32) for index in indices])
            x = np.concatenate([x, noise], axis=1)
        return torch.from_numpy(x), torch.from_numpy(self.labels[indices])


@register_task("long_memory", dataclass=LongMemoryConfig)
class LongMemoryTask(FairseqTask):
    """See the head of this file."""

    cfg: LongMemoryConfig
    data_kind = "generated_sequences"

    @classmethod
    def setup_task(cls, cfg: LongMemoryConfig, **unused: Any) -> "LongMemoryTask":
        for option, value in (
            ("--sequence-length", cfg.sequence_length),
            ("--epoch-sequences", cfg.epoch_sequences),
        ):
            if value < 1:
                raise InputError(f"{option} must be at least 1, not {value}")
        return cls(cfg)

    @property
    def is_copying(self) -> bool:
        return str(self.cfg.problem) == "copy_memory"

    @property
    def input_size(self) -> int:
        """Of each step: symbols are one-hot."""
        return SYMBOLS + 2 if self.is_copying else 1

    @property
    def classes(self) -> int:
        return 10

    @property
    def output_steps(self) -> int:
        """How many of the last steps are read."""
        return COPIED if self.is_copying else 1

    def max_positions(self) -> None:
        """Sequences may have any length."""

    source_dictionary = target_dictionary = None

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> FairseqCriterion:
        """Raises InputError if the criterion is not one of classes."""
        criterion = super().build_criterion(cfg, from_checkpoint)
        check_criterion(criterion, cfg, "long_memory", "sequence_classification", OF_CLASSES)
        return criterion

    def load_dataset(self, split: str, combine: bool = False, **unused: Any) -> None:
        """Raises InputError if there is no such set, or an option has no effect on what the training learns."""
        cfg, is_training = self.cfg, split == "train"
        if is_training:
            idle, needed = ("permute", "pixels") if self.is_copying else ("epoch_sequences", "copy_memory")
            if getattr(cfg, idle) != getattr(LongMemoryConfig, idle):
                raise InputError(f"{flag(idle)} has no effect without --problem {needed}: leave it out")
        # What is drawn for a held-out set is the same for every training.
        seed = (cfg.seed,) if is_training else (PERMUTATION_SEED, len(split))
        if self.is_copying and is_training:
            self.datasets[split] = CopyMemoryDataset(cfg.epoch_sequences, cfg.sequence_length, seed)
            return
        try:
            with np.load(f"{cfg.data}/{split}.npz") as arrays:
                arrays_of_set = dict(arrays)
        except FileNotFoundError:
            name = "copy_memory" if self.is_copying else "pixels"
            raise InputError(
                f"{cfg.data}/{split}.npz: no such file; run 'fairseq-plugins prepare {name}' again"
            ) from None
        if self.is_copying:
            symbols = arrays_of_set["symbols"]
            self.datasets[split] = CopyMemoryDataset(len(symbols), cfg.sequence_length, seed, symbols)
            return
        count = arrays_of_set["pixels"].shape[1]
        if cfg.sequence_length < count:
            raise InputError(f"--sequence-length {cfg.sequence_length}: a digit has {count} pixels, and all are read")
        order = np.random.RandomState(PERMUTATION_SEED).permutation(count) if cfg.permute else None
        self.datasets[split] = PixelDataset(
            arrays_of_set["pixels"], arrays_of_set["labels"], cfg.sequence_length, seed, is_training, order
        )

    def predictions(
        self, sample: dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> list[Prediction]:
        """The digit of each sequence, and the logarithm of each digit's probability; of copy memory the symbols, and
        the logarithms of the right ones' probabilities."""
        log_probabilities = criterion.log_probabilities(model, sample)
        chosen, numbers = log_probabilities.argmax(dim=-1), log_probabilities
        if self.is_copying:
            numbers = log_probabilities.gather(-1, sample["target"].unsqueeze(-1)).squeeze(-1)
        rows = chosen.view(len(chosen), -1).tolist()
        return [(" ".join(map(str, row)), values) for row, values in zip(rows, numbers.tolist(), strict=True)]
