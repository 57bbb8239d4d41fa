"""A trained model with the data that it was trained on: what every way of decoding begins with."""

from __future__ import annotations

import argparse
import contextlib
import logging
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary, FairseqDataset
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig

from .. import register
from ..checkpoints import architecture, checked_checkpoint, load_extensions_of, trained_on
from ..corpora.preparation import Preparation
from ..errors import InputError
from ..patches.messages import quiet_warnings
from .prepared_data import PreparedData

if TYPE_CHECKING:
    from typing_extensions import Self


class Hypothesis(NamedTuple):
    """What a model made of one example.

    Attributes:
        pieces: of a translation its subwords, separated by spaces; else the class, the score, or nothing
        log_probabilities: natural logarithms: of each subword and of the end of the sentence, of each class, or of each
            token that was read
    """

    pieces: str
    log_probabilities: list[float]


class Share(NamedTuple):
    """The part of a set that one of several processes decodes: of ``processes`` batches the one at ``number``."""

    number: int = 0
    processes: int = 1


WHOLE = Share()


class Stopwatch:
    """Adds up the seconds of what is done within it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.seconds += time.perf_counter() - self._start


@dataclass(frozen=True)
class BatchOptions:
    """How examples are put into batches, and what computes.

    Attributes:
        max_tokens: in a batch, padding included; None for no limit
        batch_size: examples in a batch; None for no limit
        multiple: of which the number of examples in a batch is, where it can be
        num_workers: processes that read data
        is_half: whether it is computed in float16
        seed: of PyTorch's and NumPy's generators; None for none
    """

    max_tokens: int | None = None
    batch_size: int | None = None
    multiple: int = 8
    num_workers: int = 0
    is_half: bool = False
    seed: int | None = None

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> BatchOptions:
        """Those among the options that fairseq's parser made."""
        multiple, seed = parsed.required_batch_size_multiple, parsed.seed
        return cls(parsed.max_tokens, parsed.batch_size, multiple, parsed.num_workers, parsed.fp16, seed)

    def limited(self, tokens: int, dataset: FairseqDataset) -> BatchOptions:
        """With so many tokens in a batch, or those of the largest example, where no option says how large one is."""
        if self.max_tokens is not None or self.batch_size is not None:
            return self
        return replace(self, max_tokens=max(tokens, largest(dataset)))


def largest(dataset: FairseqDataset) -> int:
    """The tokens of the largest example."""
    return max(map(dataset.num_tokens, range(len(dataset))), default=0)


@dataclass(frozen=True)
class TrainedModel:
    """One model, or an ensemble of several.

    Attributes:
        paths: the checkpoints
        architectures: the ``--arch`` of each
        models: in evaluation mode, on ``device``
        cfg: the configuration of the first one's training
        task: fairseq's, with the dictionaries
        data: what they were trained on
        device: where they compute
    """

    paths: list[Path]
    architectures: list[str]
    models: list[BaseFairseqModel]
    cfg: DictConfig
    task: FairseqTask
    data: PreparedData
    device: torch.device

    preparation_class: ClassVar[type[Preparation]]
    """The kind of data that these models are trained on."""

    @classmethod
    def load(
        cls,
        paths: Sequence[str | Path],
        data: Path | None = None,
        device: str = "cpu",
        overrides: dict[str, Any] | None = None,
    ) -> Self:
        """Reads checkpoints.

        Args:
            paths: the checkpoints, trained on the same data
            data: the prepared data; None for that of the first one's training
            device: ``cpu``, ``cuda``, …
            overrides: options of the training that are to be otherwise, by fairseq's names

        Raises:
            InputError: one is not a checkpoint of such a model, or was trained on other data, or the data is damaged or
                not there.
        """
        load_extensions_of(paths)
        register()
        states = [checked_checkpoint(path) for path in paths]
        for path, state in zip(paths, states, strict=True):
            cls.check_architecture(str(architecture(state)), path)
        prepared = data_of(paths, data)
        cls.check_data(prepared)
        prepared.verify("")
        for path, state in zip(paths, states, strict=True):
            prepared.check_trained_on(state, path)
        overrides = {"data": str(prepared.folder / "bin"), **(overrides or {})}
        try:
            with quietly():
                models, cfg, task = checkpoint_utils.load_model_ensemble_and_task(list(map(str, paths)), overrides)
        except RuntimeError as error:
            if "size mismatch" not in str(error):
                raise
            raise InputError(
                f"{paths[0]}: the dictionaries of {prepared.folder} are of another size; give its own data"
            ) from None
        for model in models:
            model.eval().to(device)
        architectures = [str(architecture(state)) for state in states]
        return cls(list(map(Path, paths)), architectures, models, cfg, task, prepared, torch.device(device))

    @classmethod
    def check_architecture(cls, name: str, path: str | Path) -> None:
        """Raises InputError where a checkpoint's architecture is no such model."""
        raise NotImplementedError

    @classmethod
    def check_data(cls, data: PreparedData) -> None:
        """Raises InputError where the data is of another kind than such models read."""
        if not isinstance(data.preparation, cls.preparation_class):
            raise InputError(
                f"{data.folder}: a corpus of {data.preparation.title}, but what is done here needs "
                f"{cls.preparation_class.title}"
            )

    @property
    def path(self) -> Path:
        """The checkpoint, or the first of several."""
        return self.paths[0]

    @property
    def architecture(self) -> str:
        """The ``--arch`` of the model, or of the first of several."""
        return self.architectures[0]

    @property
    def model(self) -> BaseFairseqModel:
        """The model, or the first of several."""
        return self.models[0]

    @property
    def source_dictionary(self) -> Dictionary:
        return self.task.source_dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        return self.task.target_dictionary

    def dataset(self, subset: str, options: Mapping[str, Any] = MappingProxyType({})) -> FairseqDataset:
        """A prepared set.

        Args:
            subset: a split
            options: of the task, by their names, that win over the training's; others are not looked at
        """
        for name, value in options.items():
            if name in self.task.cfg:
                setattr(self.task.cfg, name, value)  # a Namespace in fairseq's older tasks
        with quietly():
            self.task.load_dataset(subset, is_evaluated=True)
        return self.task.dataset(subset)

    def batches(self, dataset: FairseqDataset, options: BatchOptions, share: Share = WHOLE) -> Iterator[dict[str, Any]]:
        """The batches of a data set, on the models' device, of examples of like lengths.

        Raises:
            InputError: an example is larger than a batch may be.
        """
        if options.max_tokens is not None and (longest := largest(dataset)) > options.max_tokens:
            raise InputError(
                f"--max-tokens {options.max_tokens}: an example has {longest:,} tokens, which no batch can hold; say "
                f"at least {longest}"
            )
        if options.seed is not None:
            utils.set_torch_seed(options.seed)
        for model in self.models if options.is_half else ():
            model.half()
        with quietly():
            iterator = self.task.get_batch_iterator(
                dataset,
                max_tokens=options.max_tokens,
                max_sentences=options.batch_size,
                required_batch_size_multiple=options.multiple,
                num_shards=share.processes,
                shard_id=share.number,
                num_workers=options.num_workers,
                disable_iterator_cache=True,
            ).next_epoch_itr(shuffle=False)
        for batch in iterator:
            if "net_input" in batch:  # where batches don't come out even, the last processes have nothing to do
                yield utils.apply_to_sample(lambda tensor: tensor.to(self.device), batch)


def data_of(paths: Sequence[str | Path], data: Path | None = None) -> PreparedData:
    """The prepared data that checkpoints were trained on.

    Args:
        paths: the checkpoints, of which the first one is asked
        data: another folder

    Raises:
        InputError: there is no such checkpoint or data, or it cannot be read.
    """
    load_extensions_of(paths)  # the kind of the data may be one of theirs
    register()
    return PreparedData.load(data or trained_on(checked_checkpoint(paths[0]), str(paths[0])))


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without what fairseq tells of dictionaries and batches."""
    logger = logging.getLogger("fairseq")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            quiet_warnings()
            yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def flushed_denormals() -> Iterator[None]:
    """CPUs take numbers below the least normal one for zero, as :func:`..patches.speed.flush_denormals` has it."""
    was_flushed = bool(torch.tensor([1e-310], dtype=torch.float64).mul(1.0).eq(0))
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_flushed)


def class_of(name: str) -> type[BaseFairseqModel]:
    """The class of an architecture's models."""
    from fairseq.models import ARCH_MODEL_REGISTRY

    model: type[BaseFairseqModel] = ARCH_MODEL_REGISTRY[name]
    return model
