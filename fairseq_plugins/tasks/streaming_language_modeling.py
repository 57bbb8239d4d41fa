"""``--task streaming_language_modeling``: language models read a text in streams, and carry their states on.

``--batch-size`` is the number of streams side by side (of each process; several processes have streams of their own),
``--tokens-per-sample`` the length of a window. States go from window to window, detached, and begin with zeros at each
epoch's start. With ``--random-windows`` lengths are drawn anew in each epoch, and the learning rate of an update is
multiplied by its window's length over ``--tokens-per-sample`` (Merity, Keskar and Socher 2018, Section 5).

Checkpoints hold the states of all streams, so that a training goes on in the middle of an epoch as if nothing had been.
fairseq-eval-lm with this task reads a set as one stream.
"""

# No postponed evaluation of annotations here: fairseq reads the types of the configuration's fields.
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset, data_utils
from fairseq.data.iterators import EpochBatchIterator
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.optim import FairseqOptimizer
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING
from torch import Tensor

from ..errors import InputError
from ..models.carried_states import CarriedStates, Tensors
from ..models.recurrent_language_model import RecurrentLanguageModel
from ..patches.batches import without_persistent_workers
from .streams import Text, Windows, window_lengths

TASK = "streaming_language_modeling"
LOSSES = {"loss", "nll_loss"}
VALIDATION_DIGITS = 6
"""After the point, of the losses that schedulers and the choice of the best checkpoint compare; fairseq keeps three."""


@dataclass
class StreamingLanguageModelingConfig(FairseqDataclass):
    """The options of ``streaming_language_modeling``."""

    data: str = field(default=MISSING, metadata={"help": "folder with dict.txt and fairseq-preprocess's sets"})
    tokens_per_sample: int = field(
        default=70, metadata={"help": "tokens of a window; with --random-windows, on average"}
    )
    random_windows: bool = field(
        default=False, metadata={"help": "train on windows of random lengths, the learning rate in proportion"}
    )
    train_subset: str = II("dataset.train_subset")
    seed: int = II("common.seed")


class WindowsIterator(EpochBatchIterator):
    """The windows of an epoch."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on where a checkpoint was saved.

        Raises:
            InputError: this epoch has fewer windows than were read then, so that it has others.
        """
        read, count = state_dict.get("iterations_in_epoch", 0), len(self)
        try:
            super().load_state_dict(state_dict)
        except RuntimeError:
            raise InputError(
                f"the checkpoint was saved in the middle of an epoch, after {read:,} windows, and this training has "
                f"{count:,} in all: go on with the same windows and streams (--tokens-per-sample, --random-windows, "
                f"--seed, --batch-size), or say --reset-dataloader to keep the parameters and count epochs from 1"
            ) from None


@register_task(TASK, dataclass=StreamingLanguageModelingConfig)
class StreamingLanguageModelingTask(FairseqTask):
    """See the head of this file."""

    data_kind = "running_text"
    reads_streams = True

    def __init__(self, cfg: StreamingLanguageModelingConfig, dictionary: Dictionary) -> None:
        super().__init__(cfg)
        if cfg.tokens_per_sample < 1:
            raise InputError(f"--tokens-per-sample must be at least 1, not {cfg.tokens_per_sample}")
        self.dictionary = dictionary
        self._train_states, self._valid_states = CarriedStates(), CarriedStates()
        self._of_processes: list[Tensors] | None = None
        self._of_other_windows: str | None = None
        self._steps: list[int] = []

    @classmethod
    def setup_task(cls, cfg: StreamingLanguageModelingConfig, **unused: Any) -> "StreamingLanguageModelingTask":
        """Raises InputError if there is no dictionary."""
        path = os.path.join(cfg.data, "dict.txt")
        if not os.path.isfile(path):
            raise InputError(f"{path}: no such file; give the bin that 'fairseq-plugins prepare text' makes")
        return cls(cfg, Dictionary.load(path))

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> FairseqCriterion:
        """Raises InputError if types that no text has would get a share of the target, or a window were read twice."""
        if getattr(cfg, "label_smoothing", 0):
            raise InputError("--label-smoothing: recurrent_lm gives <s> and <pad> no probability at all; leave it out")
        if hasattr(cfg, "r_drop_weight"):
            raise InputError(
                "--criterion r_drop reads every window twice, and a stream has one state to go on from: "
                "choose output_cross_entropy"
            )
        return super().build_criterion(cfg, from_checkpoint)

    def build_generator(self, *_: Any, **__: Any) -> None:
        """Raises InputError: nothing is translated here, and fairseq-generate would show drawn text as hypotheses."""
        raise InputError("a language model translates nothing: 'fairseq-plugins generate-text' writes text")

    def build_dataset_for_inference(self, *_: Any, **__: Any) -> None:
        """Raises InputError: fairseq's hub interface has no way to read a stream."""
        raise InputError(
            "fairseq's hub interface cannot read a text as one stream: 'fairseq-plugins generate-text' writes text, "
            "and 'fairseq-plugins perplexity' reads it"
        )

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        return self.dictionary

    def max_positions(self) -> None:
        """There is no longest text."""

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Raises InputError if the model is not one that carries states from window to window."""
        if hasattr(cfg, "reads_streams"):
            # What is written here, checkpoints keep.
            cfg.reads_streams = True
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, RecurrentLanguageModel):
            raise InputError(f"--task {TASK} trains recurrent_lm and its architectures: other models carry no states")
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **unused: Any) -> None:
        """Raises InputError if there is no such set."""
        path = os.path.join(self.cfg.data, split)
        lines = data_utils.load_indexed_dataset(path, self.dictionary, combine=combine)
        if lines is None:
            raise InputError(f"{path}.bin: no such set; prepare the text again with one of this name")
        tokens = torch.cat([line.long() for line in lines])
        self.datasets[split] = Text(
            tokens, self.dictionary.eos(), self.dictionary.pad(), split in str(self.cfg.train_subset).split(",")
        )

    def get_batch_iterator(
        self,
        dataset: FairseqDataset,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        num_shards: int = 1,
        shard_id: int = 0,
        num_workers: int = 0,
        epoch: int = 1,
        data_buffer_size: int = 0,
        **unused: Any,
    ) -> EpochBatchIterator:
        """The windows of this process's streams in their order, of which ``max_sentences`` are side by side.

        Raises:
            InputError: nobody says how many, or they are to be of so many tokens, or the text is too short for them or
                for a window.
        """
        if max_tokens is not None:
            raise InputError(
                f"--max-tokens {max_tokens} has no effect with --task {TASK}: leave it out; --batch-size is the number "
                "of streams, --tokens-per-sample the length of their windows"
            )
        if max_sentences is None:
            raise InputError(f"--task {TASK} needs --batch-size, the number of streams side by side")
        windows = self.windows(dataset, max_sentences, num_shards, shard_id, epoch)
        iterator = WindowsIterator(
            dataset=windows,
            collate_fn=windows.collater,
            batch_sampler=[[index] for index in range(len(windows))],
            num_workers=num_workers,
            epoch=epoch,
            buffer_size=data_buffer_size,
            disable_shuffling=True,
        )
        return without_persistent_workers(iterator)

    def windows(self, text: Text, streams: int, num_shards: int = 1, shard_id: int = 0, epoch: int = 1) -> Windows:
        """The windows of a process, with ``streams`` of its own.

        Raises:
            InputError: the text is too short.
        """
        mean = self.cfg.tokens_per_sample
        total = streams * num_shards
        if len(text) < total:
            name, option = ("training text", "--batch-size") if text.is_training else ("text", "--batch-size-valid")
            raise InputError(f"the {name} has {len(text):,} tokens, and cannot be {total:,} streams: lower {option}")
        if text.is_training and text.longest_stream(total) < mean:
            raise InputError(
                f"the training text has {len(text):,} tokens, which in {total:,} streams is less than a window of "
                f"{mean:,}: lower --batch-size or --tokens-per-sample"
            )
        random = None
        if text.is_training and self.cfg.random_windows:
            random = np.random.default_rng([self.cfg.seed, epoch])
        lengths = window_lengths(text.longest_stream(total), mean, random)
        return text.windows(total, lengths, slice(shard_id * streams, (shard_id + 1) * streams))

    def eval_lm_dataloader(
        self, dataset: Text, batch_size: int | None = None, num_shards: int = 1, context_window: int = 0, **unused: Any
    ) -> "CarryingWindows":
        """A set for fairseq-eval-lm, as one stream.

        Raises:
            InputError: it is to be several streams, each of which would begin with zeros, or shared among processes,
                or each window is to have a context of its own.
        """
        if (batch_size or 1) > 1:
            raise InputError(f"--task {TASK} evaluates a text as one stream: leave out --batch-size")
        if num_shards > 1 or context_window > 0:
            raise InputError(f"--task {TASK} reads a text in one process, its context being all that was read before")
        return CarryingWindows(self.windows(dataset, 1))

    def train_step(
        self,
        sample: dict[str, Any],
        model: BaseFairseqModel,
        criterion: FairseqCriterion,
        optimizer: FairseqOptimizer,
        update_num: int,
        ignore_grad: bool = False,
    ) -> tuple[Tensor, int, dict[str, Any]]:
        if all(parameter.grad is None for parameter in model.parameters()):
            # An update begins. The one before may have been given up (an overflow of --fp16), with no optimizer_step.
            self._steps.clear()
        self._steps.append(sample["target"].size(1))
        states = self._train_states
        if ignore_grad:
            states = CarriedStates()
        elif self._of_other_windows is not None:
            if sample["window"] > 0:
                raise InputError(self._of_other_windows)
            self._of_other_windows = None
        return super().train_step(
            carrying(sample, states), model, criterion, optimizer, update_num, ignore_grad=ignore_grad
        )

    def valid_step(
        self, sample: dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> tuple[Tensor, int, dict[str, Any]]:
        return super().valid_step(carrying(sample, self._valid_states), model, criterion)

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: FairseqCriterion) -> None:
        """Logs what a criterion said, losses of a validation in digits that tell epochs apart."""
        if not criterion.training:
            # In float64, or the mean over a set would lose them.
            logging_outputs = [
                output | {name: float(output[name]) for name in LOSSES & output.keys()} for output in logging_outputs
            ]
        super().reduce_metrics(logging_outputs, criterion)
        if not criterion.training:
            for meters in metrics.get_active_aggregators():
                for name in LOSSES & meters.keys():
                    meters[name].round = VALIDATION_DIGITS

    def optimizer_step(self, optimizer: FairseqOptimizer, model: BaseFairseqModel, update_num: int) -> None:
        """An update, with random windows by a learning rate in proportion to their length."""
        share = 1.0
        if self.cfg.random_windows:
            share = sum(self._steps) / len(self._steps) / self.cfg.tokens_per_sample
        self._steps.clear()
        lr = optimizer.get_lr()
        optimizer.set_lr(lr * share)
        super().optimizer_step(optimizer, model, update_num)
        optimizer.set_lr(lr)

    def gather_states(self) -> None:
        """Before a checkpoint is saved by one of several processes, has it know the states of all."""
        self._of_processes = [self._train_states.tensors()]
        _, world = _rank_and_world()
        if world > 1:
            gathered: list[Tensors] = [[] for _ in range(world)]
            for state in self._train_states.tensors():
                by_process: Tensors = [[] for _ in range(world)]
                for tensor in state:
                    copies = [torch.empty_like(tensor) for _ in range(world)]
                    torch.distributed.all_gather(copies, tensor.contiguous())
                    for tensors, copy in zip(by_process, copies, strict=True):
                        tensors.append(copy)
                for of_process, tensors in zip(gathered, by_process, strict=True):
                    of_process.append(tensors)
            self._of_processes = gathered

    @property
    def windows_options(self) -> str:
        """The options that say which tokens a window of an epoch has, as they are written."""
        options = f"--tokens-per-sample {self.cfg.tokens_per_sample}"
        return f"{options} --random-windows --seed {self.cfg.seed}" if self.cfg.random_windows else options

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """What fairseq keeps of the task in a checkpoint."""
        of_processes = self._of_processes or [self._train_states.tensors()]
        states = [[[tensor.cpu() for tensor in state] for state in tensors] for tensors in of_processes]
        return {type(self).__name__: {"states": states, "windows": self.windows_options}}

    def set_checkpoint_dict(self, content: dict[str, Any]) -> None:
        """Goes on from a checkpoint; :meth:`train_step` refuses to, in the middle of an epoch of other windows."""
        states, windows = content["states"], content["windows"]
        rank, world = _rank_and_world()
        saved = "the checkpoint was saved in the middle of an epoch"
        instead = "or say --reset-dataloader to keep the parameters and count epochs from 1"
        self._of_other_windows = None
        if len(states) != world:
            self._of_other_windows = (
                f"{saved} by {len(states)} processes, each with streams of its own, and this training has {world}: "
                f"go on with as many, {instead}"
            )
        elif windows != self.windows_options:
            self._of_other_windows = (
                f"{saved} with {windows}, and this training has {self.windows_options}: go on with the same windows, "
                f"{instead}"
            )
        else:
            self._train_states.load(states[rank])


def _rank_and_world() -> tuple[int, int]:
    """The number of this process, and of all."""
    if not torch.distributed.is_initialized():
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


class CarryingWindows:
    """The windows of a set in their order, each with what the windows before have left."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    def __len__(self) -> int:
        return len(self._windows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        states = CarriedStates()
        return (carrying(sample, states) for sample in self._windows)


def carrying(sample: dict[str, Any], states: CarriedStates) -> dict[str, Any]:
    """A batch by which a model goes on from states, with zeros in the first window."""
    if sample["window"] == 0:
        states.clear()
    return {**sample, "net_input": {**sample["net_input"], "carried": states}}
