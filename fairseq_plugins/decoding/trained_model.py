"""A trained model with the data that it was trained on: what every way of decoding begins with."""

from __future__ import annotations

import argparse
import ast
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

    def fitted(self, dataset: FairseqDataset, tokens: int) -> BatchOptions:
        """With ``tokens`` in a batch, or those of the largest example, where no option says how large one is.

        Raises:
            InputError: an example is larger than a batch may be.
        """
        if self.max_tokens is None and self.batch_size is not None:
            return self
        largest = max(map(dataset.num_tokens, range(len(dataset))), default=0)
        if self.max_tokens is None:
            return replace(self, max_tokens=max(tokens, largest))
        if largest > self.max_tokens:
            raise InputError(
                f"--max-tokens {self.max_tokens}: an example has {largest:,} tokens, which no batch can hold; say at "
                f"least {largest}"
            )
        return self


def named_options(parsed: argparse.Namespace, arguments: Sequence[str]) -> dict[str, Any]:
    """Of the options that a parser made those that the arguments name, by their names in it."""
    names = {argument.partition("=")[0].lstrip("-").replace("-", "_") for argument in arguments}
    return {name: getattr(parsed, name) for name in sorted(names) if hasattr(parsed, name)}


def model_overrides(parsed: argparse.Namespace) -> dict[str, Any]:
    """Options of the training that are replaced, by fairseq's names (``--model-overrides``).

    Raises:
        InputError: they are no dictionary.
    """
    try:
        overrides = ast.literal_eval(parsed.model_overrides)
    except (ValueError, SyntaxError):
        overrides = None
    if not isinstance(overrides, dict):
        raise InputError(
            f"--model-overrides {parsed.model_overrides}: write a dictionary of Python, such as \"{{'dropout': 0.1}}\""
        )
    return overrides


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

    preparation_class: ClassVar[type[Preparation]] = Preparation
    """The kind of data that these models are trained on; any, unless a subclass says which."""

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
            overrides: options of the training that are replaced, by fairseq's names

        Raises:
            InputError: one is not a checkpoint of such a model, or was trained on other data, or the data is damaged or
                not there.
        """
        load_extensions_of(paths)
        register()
        states = [checked_checkpoint(path) for path in paths]
        for path, state in zip(paths, states, strict=True):
            cls.check_architecture(str(architecture(state)), path)
        prepared = PreparedData.load(data or trained_on(states[0], str(paths[0])))
        prepared.prepared_as(cls.preparation_class)
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
        """Raises InputError where a checkpoint's architecture is no such model; any is one, unless a subclass says."""

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
        """The batches of a data set, on the models' device, of examples of like lengths; options are fitted to it."""
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


def class_of(name: str) -> type[BaseFairseqModel]:
    """The class of an architecture's models."""
    from fairseq.models import ARCH_MODEL_REGISTRY

    model: type[BaseFairseqModel] = ARCH_MODEL_REGISTRY[name]
    return model
